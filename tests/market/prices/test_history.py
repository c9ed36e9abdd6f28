"""What GET /api/market answers from: which candles, which of them are closed, and encoded once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.history import KEPT, MOST_ANSWERS, History
from market.prices.quotes import LastQuotes
from market.prices.records import Tick
from tests.market.ticking import HOUR_MS, NOON_MS, make_facts

DAY_MS = TIMEFRAMES["1d"]
Change = Callable[[History, int], object]


def flat(opened_ms: int, price: float) -> PriceBar:
    return PriceBar(opened_ms, price, price, price, price, 1.0, price, price)


def make_history(*ticks: tuple[int, float], stored: int = 0, closed_ms: int | None = None) -> History:
    """Ticks as (ms after noon, price) on top of stored hours that end at noon; closed until then."""
    history = History(digits=2)
    for number in range(stored, 0, -1):
        history.restore("1h", flat(NOON_MS - number * HOUR_MS, 1.0))
    for after_ms, price in ticks:
        history.add(NOON_MS + after_ms, price, price, 1.0)
    if closed_ms is not None:
        history.close_until(NOON_MS + closed_ms)
    return history


def ask(history: History, count: int = 500, *, closed_only: bool = False) -> tuple[list[int], int | None]:
    """Opening times in hours after noon, and that of the last closed candle."""
    bars = history.bars("1h", count, closed_only=closed_only)
    times = [(_ms(candle["time"]) - NOON_MS) // HOUR_MS for candle in decoded(bars.ohlcv)]
    last = bars.last_closed_ms
    return times, None if last is None else (last - NOON_MS) // HOUR_MS


def decoded(ohlcv: bytes) -> list[dict[str, Any]]:
    return msgspec.json.decode(b"[" + ohlcv + b"]", type=list[dict[str, Any]])


def _ms(time: str) -> int:
    return round(msgspec.convert(time, type=datetime).timestamp() * 1000)


@pytest.mark.parametrize(
    ("history", "all_bars", "closed_bars", "last_closed"),
    [
        (History(digits=2), [], [], None),
        (make_history((5, 2.0)), [0], [], None),
        (make_history((5, 2.0), stored=2), [-2, -1, 0], [-2, -1], -1),
        (make_history((5, 2.0), stored=2, closed_ms=HOUR_MS - 1), [-2, -1, 0], [-2, -1], -1),
        (make_history((5, 2.0), stored=2, closed_ms=HOUR_MS), [-2, -1, 0], [-2, -1, 0], 0),
        (make_history((5, 2.0), closed_ms=HOUR_MS // 2), [0], [], None),
        (make_history(stored=3), [-3, -2, -1], [-3, -2, -1], -1),
    ],
)
def test_forming_candle_is_last_and_closed_once_its_interval_is_over(
    history: History, all_bars: list[int], closed_bars: list[int], last_closed: int | None
) -> None:
    assert ask(history) == (all_bars, last_closed)
    assert ask(history, closed_only=True) == (closed_bars, last_closed)
    assert ask(history, count=1) == (all_bars[-1:], last_closed)
    assert ask(history, count=1, closed_only=True) == (closed_bars[-1:], last_closed)


def test_candle_that_goes_on_after_a_pause_has_both_parts() -> None:
    history = make_history((5, 2.0), closed_ms=30 * MINUTE_MS)
    history.add(NOON_MS + 30 * MINUTE_MS, 3.0, 3.0, 1.0)
    history.close_until(NOON_MS + HOUR_MS)
    (candle,) = decoded(history.bars("1h", 9, closed_only=True).ohlcv)
    assert (candle["open"], candle["close"], candle["volume"]) == (2.0, 3.0, 2.0)


def test_minute_that_was_missed_completes_the_hour_that_stays_closed() -> None:
    history = make_history((5, 2.0), closed_ms=HOUR_MS)
    history.add_minute(PriceBar(NOON_MS + 30 * MINUTE_MS, 7.0, 7.0, 3.0, 3.0, 1.0, 7.0, 3.0))
    (candle,) = decoded(history.bars("1h", 9, closed_only=True).ohlcv)
    assert ask(history) == ([0], 0)
    assert (candle["open"], candle["high"], candle["close"], candle["volume"]) == (2.0, 7.0, 3.0, 2.0)


def test_hour_that_was_stored_before_its_end_is_closed_after_a_restart() -> None:
    """A market that closes for the day closes it, and one whose source went closes it with its interval."""
    history = make_history(stored=1)
    history.resume([flat(NOON_MS - HOUR_MS, 1.0)])
    assert ask(history) == ([-1], -1)


@pytest.mark.parametrize("stored", [KEPT - 1, KEPT, KEPT + 1, 2 * KEPT - 1, 2 * KEPT, 2 * KEPT + 1, 3 * KEPT])
def test_there_are_500_bars_however_many_were_stored(stored: int) -> None:
    history = make_history((5, 2.0), stored=stored)
    assert ask(history) == (list(range(-KEPT + 1, 1)), -1)
    assert ask(history, closed_only=True)[0] == list(range(max(-KEPT, -stored), 0))


def test_closed_candle_takes_no_tick_and_an_older_one_is_not_kept() -> None:
    history = make_history((0, 2.0), stored=2, closed_ms=MINUTE_MS)
    before = history.bars("1m", 9, closed_only=True)
    history.add(NOON_MS + MINUTE_MS - 1, 7.0, 7.0, 1.0)
    assert history.bars("1m", 9, closed_only=False) == before
    history.restore("1h", flat(NOON_MS - 2 * HOUR_MS, 9.0))
    assert ask(history) == ([-2, -1, 0], -1)


@pytest.mark.parametrize("closed_only", [False, True])
def test_rows_are_the_candles_that_are_answered(closed_only: bool) -> None:
    history = make_history((5, 2.005), (HOUR_MS, 3.0), (HOUR_MS + 1, 2.5), stored=3)
    answered = decoded(history.bars("1h", 3, closed_only=closed_only).ohlcv)
    rows = history.rows("1h", 3, closed_only=closed_only)
    assert [[_ms(candle.pop("time")), *candle.values()] for candle in answered] == [[*row] for row in rows]


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
    seen, expected = (each.bars(timeframe, 9, closed_only=closed_only) for each in (asked, left_alone))
    assert (seen.ohlcv, seen.last_closed_ms) == (expected.ohlcv, expected.last_closed_ms)


def test_who_asked_before_sees_what_closed_elsewhere() -> None:
    history, ahead = (make_history((0, 1.1), closed_ms=ms) for ms in (MINUTE_MS, DAY_MS))
    before = ask(history)
    history.close_like(ahead)
    assert (before, ask(history)) == (([0], None), ([0], 0))


def test_same_bars_are_the_same_object_until_a_tick_comes_or_many_others_were_asked_for() -> None:
    history = make_history((0, 1.1))
    first = history.bars("1h", 1, closed_only=False)
    assert history.bars("1h", 1, closed_only=False) is first
    for count in range(2, 3 + MOST_ANSWERS):
        history.bars("1h", count, closed_only=False)
    assert history.bars("1h", 1, closed_only=False) is not first
    history.add(NOON_MS + 1, 1.15, 1.2, 1.0)
    assert history.bars("1h", 1, closed_only=False).ohlcv != first.ohlcv


def test_open_market_without_a_quote_is_stale_and_with_one_of_a_clock_ahead_open() -> None:
    board = LastQuotes()
    assert board.state(make_facts(), NOON_MS) == "stale"
    board.put(Tick("EURUSD", 1.08, 1.0802, NOON_MS, 1.0), 5)
    assert board.state(make_facts(), NOON_MS - 3_000) == "open"
