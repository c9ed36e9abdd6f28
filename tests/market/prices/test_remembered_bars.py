"""Encoded bars are remembered until something changes, and whoever asked before sees every change."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.history import MOST_ANSWERS, History
from tests.market.ticking import NOON_MS

DAY_MS = TIMEFRAMES["1d"]
Change = Callable[[History, int], object]


def whole_minute(at_ms: int) -> PriceBar:
    return PriceBar(at_ms - at_ms % MINUTE_MS, 1.1, 1.3, 1.0, 1.2, 5.0, 1.4, 1.1, "late")


def close_like_one_ahead(history: History, at_ms: int) -> None:
    ahead = History(history.digits)
    ahead.add(at_ms - 2 * DAY_MS, 1.1, 1.2, 1.0)
    ahead.close_until(at_ms)
    history.close_like(ahead)


CHANGES: dict[str, Change] = {
    "tick": lambda history, at_ms: history.add(at_ms, 1.0 + at_ms % 997 / 1_000, 2.0, 1.0),
    "close": lambda history, at_ms: history.close_until(at_ms),
    "halt": lambda history, at_ms: history.halt(at_ms + DAY_MS),
    "fill": lambda history, at_ms: history.fill(at_ms - at_ms % MINUTE_MS),
    "minute": lambda history, at_ms: history.add_minute(whole_minute(at_ms)),
    "restore": lambda history, at_ms: history.restore("5m", whole_minute(at_ms - at_ms % TIMEFRAMES["5m"])),
    "resume": lambda history, at_ms: history.resume([whole_minute(at_ms)], at_ms),
    "like another": close_like_one_ahead,
}
GAPS_MS = st.sampled_from([1, 900, MINUTE_MS, 7 * MINUTE_MS, 90 * MINUTE_MS, DAY_MS])
HAPPENINGS = st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), GAPS_MS), min_size=2, max_size=12)


def seen(history: History, timeframe: str, closed_only: bool) -> tuple[bytes, int | None]:
    bars = history.bars(timeframe, 9, closed_only=closed_only)
    return bars.ohlcv, bars.last_closed_ms


@settings(max_examples=150)
@given(HAPPENINGS, st.sampled_from(list(TIMEFRAMES)), st.booleans())
def test_who_asked_before_sees_what_others_see(
    happenings: list[tuple[str, int]], timeframe: str, closed_only: bool
) -> None:
    asked, left_alone, at_ms = History(5), History(5), NOON_MS
    for name, gap_ms in happenings:
        asked.bars(timeframe, 9, closed_only=closed_only)
        at_ms += gap_ms
        for history in (asked, left_alone):
            CHANGES[name](history, at_ms)

    assert seen(asked, timeframe, closed_only) == seen(left_alone, timeframe, closed_only)


def test_same_bars_are_the_same_object_until_a_tick_comes() -> None:
    history = History(5)
    history.add(NOON_MS, 1.1, 1.2, 1.0)
    first = history.bars("1h", 100, closed_only=False)

    assert history.bars("1h", 100, closed_only=False) is first
    history.add(NOON_MS + 1, 1.15, 1.2, 1.0)
    assert history.bars("1h", 100, closed_only=False).ohlcv != first.ohlcv


def test_few_answers_are_remembered() -> None:
    history = History(5)
    history.add(NOON_MS, 1.1, 1.2, 1.0)
    first = history.bars("1m", 1, closed_only=False)
    for count in range(2, 3 + MOST_ANSWERS):
        history.bars("1m", count, closed_only=False)

    assert history.bars("1m", 1, closed_only=False) is not first


def test_who_asked_before_the_store_was_read_sees_what_it_held() -> None:
    history = History(5)
    before = history.bars("1h", 9, closed_only=False)
    history.resume([whole_minute(NOON_MS)])

    assert (before.ohlcv, history.bars("1h", 9, closed_only=False).ohlcv != b"") == (b"", True)


def test_who_asked_before_sees_what_closed_elsewhere() -> None:
    history, ahead = History(5), History(5)
    for each in (history, ahead):
        each.add(NOON_MS, 1.1, 1.2, 1.0)
        each.close_until(NOON_MS + MINUTE_MS)
    ahead.close_until(NOON_MS + DAY_MS)
    before = history.bars("1h", 9, closed_only=False)
    history.close_like(ahead)

    assert (before.last_closed_ms, history.bars("1h", 9, closed_only=False).last_closed_ms) == (None, NOON_MS)
