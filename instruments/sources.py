"""The feeds that an instrument may name as its source. Simulated prices and real ones never mix."""

from collections.abc import Sequence

DEMO, REPLAY, PUSH = "demo", "replay", "push"
SIMULATED = frozenset({DEMO, REPLAY})


class KnownFeeds:
    """The market sets these to the feeds that it has."""

    names: Sequence[str] = (DEMO, REPLAY, PUSH)


known_feeds = KnownFeeds()


def is_simulated(feed: str) -> bool:
    """By its name, as an instrument gives it (`kraken:BTC/USD`) or a candle keeps it (`demo+replay`)."""
    return feed.partition("+")[0].partition(":")[0] in SIMULATED


def default_feed(is_demo: bool) -> str:
    """The feed of an instrument that names no source."""
    return DEMO if is_demo else PUSH
