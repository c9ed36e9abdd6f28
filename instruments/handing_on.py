"""Whether data of a source may be handed on at all: the terms of many venues forbid it."""

from collections.abc import Collection, Iterable


def may_be_handed_on(feeds: Iterable[str], withheld: Collection[str]) -> bool:
    """Of whatever has one of these feeds: an instrument, or candles, which keep `kraken+binance`. A key is
    named as `push:desk`, all of them as `push`."""
    if not withheld:
        return True
    named = {each for feed in feeds for each in feed.split("+") if each}
    return not any(is_covered(each, name) for each in named for name in withheld)


def is_covered(feed: str, withheld: str) -> bool:
    """Whoever takes ticks of any key takes those of a withheld one too."""
    return feed == withheld or feed.startswith(f"{withheld}:") or withheld.startswith(f"{feed}:")
