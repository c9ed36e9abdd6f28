"""The feeds that an instrument may name as its source. Simulated prices and real ones never mix."""

from functools import lru_cache

DEMO, REPLAY, PUSH = "demo", "replay", "push"
IMPORTED = "import"
"""The source of minutes that come from files: no feed, and nobody was ever quoted them."""
SIMULATED = frozenset({DEMO, REPLAY})
VENUES = ("kraken", "oanda", "binance")
FEEDS = (DEMO, REPLAY, *VENUES, PUSH)
"""All that an instrument may name as its source."""


# Asked for every candle that is written.
@lru_cache(maxsize=256)
def is_simulated(feed: str) -> bool:
    """By its name, as an instrument gives it (`kraken:BTC/USD`) or a candle keeps it (`demo+replay`)."""
    return feed.partition("+")[0].partition(":")[0] in SIMULATED


def default_feed(is_demo: bool) -> str:
    """The feed of an instrument that names no source."""
    return DEMO if is_demo else PUSH


# Asked of each instrument every second.
@lru_cache(maxsize=1024)
def feeds_of(source: str, fallback: str, default: str) -> tuple[str, ...]:
    """The feeds of an instrument by the names they send under: a venue's own symbol is no part of that. A
    fallback of the other kind is none: nobody is to take simulated prices for real ones."""
    first = source or default
    named = [first]
    if fallback and is_simulated(fallback) == is_simulated(first):
        named.append(fallback)
    kinds = [name if name.startswith("push") else name.partition(":")[0] for name in named]
    return tuple(dict.fromkeys(kinds))
