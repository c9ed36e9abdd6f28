"""What GET /api/market answers from: which candles, and which of them is called closed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from core.times import MINUTE_MS
from market.prices.candles import PriceBar
from market.prices.history import KEPT, History
from tests.market.ticking import HOUR_MS, NOON_MS


def make_history(*ticks: tuple[int, float], stored: int = 0, timeframe: str = "1h") -> History:
    """Ticks as (ms after noon, price) on top of stored candles that end at noon."""
    history, span_ms = History(digits=2), HOUR_MS if timeframe == "1h" else MINUTE_MS
    for number in range(stored, 0, -1):
        history.restore(timeframe, PriceBar(NOON_MS - number * span_ms, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    for after_ms, price in ticks:
        history.add(NOON_MS + after_ms, price, price, 1.0)
    return history


def ask(
    history: History, *, timeframe: str = "1h", count: int = 500, **wanted: bool
) -> tuple[list[int], int | None]:
    """Opening times in hours (or minutes) after noon, and that of the last closed candle."""
    bars = history.bars(timeframe, count, **{"closed_only": False} | wanted)
    span_ms = HOUR_MS if timeframe == "1h" else MINUTE_MS
    times = [(_ms(candle["time"]) - NOON_MS) // span_ms for candle in decoded(bars.ohlcv)]
    last = bars.last_closed_ms
    return times, None if last is None else (last - NOON_MS) // span_ms


def decoded(ohlcv: bytes) -> list[dict[str, Any]]:
    return msgspec.json.decode(b"[" + ohlcv + b"]", type=list[dict[str, Any]])


def _ms(time: str) -> int:
    return round(msgspec.convert(time, type=datetime).timestamp() * 1000)


def test_forming_candle_is_last_and_not_closed() -> None:
    assert ask(make_history((5, 2.0), stored=2)) == ([-2, -1, 0], -1)


def test_closed_only_leaves_the_forming_candle_out() -> None:
    assert ask(make_history((5, 2.0), stored=2), closed_only=True) == ([-2, -1], -1)


@pytest.mark.parametrize("closed_only", [False, True])
def test_candle_that_was_closed_is_closed(closed_only: bool) -> None:
    history = make_history((5, 2.0), stored=2)
    history.close_until(NOON_MS + HOUR_MS)

    assert ask(history, closed_only=closed_only) == ([-2, -1, 0], 0)


def test_candle_forms_until_the_last_millisecond_of_its_interval() -> None:
    history = make_history((5, 2.0), stored=2)
    history.close_until(NOON_MS + HOUR_MS - 1)

    assert ask(history) == ([-2, -1, 0], -1)
    assert ask(history, closed_only=True) == ([-2, -1], -1)


def test_candle_that_goes_on_after_a_pause_has_both_parts() -> None:
    history = make_history((5, 2.0))
    history.close_until(NOON_MS + 30 * MINUTE_MS)
    assert ask(history) == ([0], None)
    history.add(NOON_MS + 30 * MINUTE_MS, 3.0, 3.0, 1.0)
    history.close_until(NOON_MS + HOUR_MS)

    (candle,) = decoded(history.bars("1h", 9, closed_only=True).ohlcv)

    assert (candle["open"], candle["close"], candle["volume"]) == (2.0, 3.0, 2.0)


def test_minute_that_was_missed_completes_the_hour_that_stays_closed() -> None:
    history = make_history((5, 2.0))
    history.close_until(NOON_MS + HOUR_MS)
    history.add_minute(PriceBar(NOON_MS + 30 * MINUTE_MS, 7.0, 7.0, 3.0, 3.0, 1.0, 7.0, 3.0))

    (candle,) = decoded(history.bars("1h", 9, closed_only=True).ohlcv)

    assert ask(history) == ([0], 0)
    assert (candle["open"], candle["high"], candle["close"], candle["volume"]) == (2.0, 7.0, 3.0, 2.0)


def test_hour_that_was_stored_before_its_end_is_closed_after_a_restart() -> None:
    """A market that closes for the day closes it, and one whose source went closes it with its interval."""
    history = make_history(stored=1)
    history.resume([PriceBar(NOON_MS - HOUR_MS, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)])

    assert ask(history) == ([-1], -1)


@pytest.mark.parametrize("closed_only", [False, True])
def test_nothing_known_is_an_empty_answer(closed_only: bool) -> None:
    assert ask(History(digits=2), closed_only=closed_only) == ([], None)


def test_first_candle_ever_leaves_nothing_closed() -> None:
    assert ask(make_history((5, 2.0))) == ([0], None)
    assert ask(make_history((5, 2.0)), closed_only=True) == ([], None)


def test_without_a_forming_candle_the_last_stored_one_is_closed() -> None:
    assert ask(make_history(stored=3)) == ([-3, -2, -1], -1)


@pytest.mark.parametrize(("closed_only", "times"), [(False, [0]), (True, [-1])])
def test_one_bar_is_the_last_one(closed_only: bool, times: list[int]) -> None:
    assert ask(make_history((5, 2.0), stored=3), count=1, closed_only=closed_only) == (times, -1)


def test_one_bar_of_a_closed_market_is_the_one_it_closed() -> None:
    history = make_history((5, 2.0), stored=3)
    history.close_until(NOON_MS + 3 * HOUR_MS)

    assert ask(history, count=1, closed_only=True) == ([0], 0)


@pytest.mark.parametrize("stored", [KEPT - 1, KEPT, KEPT + 1, 2 * KEPT - 1, 2 * KEPT, 2 * KEPT + 1, 3 * KEPT])
def test_there_are_500_bars_however_many_were_stored(stored: int) -> None:
    times, last_closed = ask(make_history((5, 2.0), stored=stored))

    assert times == list(range(-KEPT + 1, 1))
    assert last_closed == -1


@pytest.mark.parametrize("stored", [KEPT, 2 * KEPT, 2 * KEPT + 1])
def test_there_are_500_closed_bars_however_many_were_stored(stored: int) -> None:
    times, _ = ask(make_history((5, 2.0), stored=stored), closed_only=True)

    assert times == list(range(-KEPT, 0))


def test_closed_candle_takes_no_tick() -> None:
    history = make_history((0, 2.0))
    history.close_until(NOON_MS + MINUTE_MS)
    before = history.bars("1m", 9, closed_only=True)

    history.add(NOON_MS + MINUTE_MS - 1, 7.0, 7.0, 1.0)

    assert history.bars("1m", 9, closed_only=False) == before


def test_forming_hour_follows_each_tick() -> None:
    history = make_history((0, 2.0), (MINUTE_MS, 5.0), (MINUTE_MS + 1, 4.0))

    (candle,) = decoded(history.bars("1h", 9, closed_only=False).ohlcv)

    assert candle == {
        **{"time": "2026-11-18T12:00:00Z", "open": 2.0, "high": 5.0, "low": 2.0, "close": 4.0},
        "volume": 3.0,
    }


def test_candle_older_than_the_last_is_not_kept() -> None:
    history = make_history(stored=2)
    history.restore("1h", PriceBar(NOON_MS - 2 * HOUR_MS, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0))

    assert ask(history) == ([-2, -1], -1)


@pytest.mark.parametrize("closed_only", [False, True])
def test_rows_are_the_candles_that_are_answered(closed_only: bool) -> None:
    history = make_history((5, 2.005), (HOUR_MS, 3.0), stored=3)
    answered = decoded(history.bars("1h", 3, closed_only=closed_only).ohlcv)

    rows = history.rows("1h", 3, closed_only=closed_only)

    assert [[_ms(candle.pop("time")), *candle.values()] for candle in answered] == [[*row] for row in rows]
