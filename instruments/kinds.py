"""Two kinds of feeds: simulated ones, and those that bring real prices. They never mix."""

from collections.abc import Sequence

DEMO, REPLAY, PUSH = "demo", "replay", "push"
SIMULATED = frozenset({DEMO, REPLAY})


class KnownFeeds:
    """What an instrument may name as its source; the market hands down what it has."""

    names: Sequence[str] = (DEMO, REPLAY, PUSH)


known_feeds = KnownFeeds()


def is_simulated(feed: str) -> bool:
    """By its name, as an instrument gives it (`kraken:BTC/USD`) or a candle keeps it (`demo+replay`)."""
    return feed.partition("+")[0].partition(":")[0] in SIMULATED


def default_feed(is_demo: bool) -> str:
    """Who prices an instrument that names no source."""
    return DEMO if is_demo else PUSH
