"""The door: each reason for which a tick is refused."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import msgspec
import pytest

from core.times import MINUTE_MS
from market.engine.admission import FUTURE_MS, reason_to_refuse
from market.prices.records import Tick
from tests.market.ticking import NOON_MS, make_facts, ms

LAST = Tick("EURUSD", 1.08, 1.0802, NOON_MS, 1.0)


def reason(
    *, hours: str = "always", closed_ms: int = 0, last: Tick | None = LAST, **changes: Any
) -> str | None:
    values: dict[str, Any] = {"bid": 1.081, "ask": 1.0812, "time_ms": NOON_MS + 1, "volume": 1.0}
    tick = Tick(symbol="EURUSD", **(values | changes))
    return reason_to_refuse(tick, last, closed_ms, make_facts(hours=hours), NOON_MS + 10)


@pytest.mark.parametrize("field", ["bid", "ask", "volume"])
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_no_number_is_refused(field: str, value: float) -> None:
    changes: dict[str, Any] = {field: value}
    assert reason(**changes) == "not_finite"


@pytest.mark.parametrize(
    "changes",
    [
        {"bid": 0.0},
        {"bid": -1.0},
        {"bid": -2.0, "ask": -1.0},
        {"volume": -0.1},
        # Less than half a point: it would be shown as nought.
        {"bid": 0.000004},
    ],
)
def test_what_must_be_positive_is_refused_otherwise(changes: dict[str, Any]) -> None:
    assert reason(**changes) == "not_positive"


@pytest.mark.parametrize("changes", [{"ask": 1e10}, {"bid": 1e10, "ask": 2e10}, {"volume": 1e10}])
def test_what_the_database_has_no_room_for_is_refused(changes: dict[str, Any]) -> None:
    assert reason(**changes) == "too_high"


@pytest.mark.parametrize(
    ("price", "expected"),
    [(nan, "not_finite"), (0.0, "not_positive"), (-5.0, "not_positive"), (1e10, "too_high"), (1.2, None)],
)
def test_price_of_a_trade_is_held_to_the_same(price: float, expected: str | None) -> None:
    assert reason(price=price, side=1) == expected


def test_ask_below_the_bid_is_refused() -> None:
    assert reason(bid=1.0813) == "crossed"


def test_ask_equal_to_the_bid_is_taken() -> None:
    assert reason(bid=1.0812) is None


@pytest.mark.parametrize(("ahead_ms", "expected"), [(FUTURE_MS, None), (FUTURE_MS + 1, "future")])
def test_clock_ahead_is_believed_up_to_five_seconds(ahead_ms: int, expected: str | None) -> None:
    assert reason(time_ms=NOON_MS + 10 + ahead_ms) == expected


def test_tick_before_the_last_one_is_refused() -> None:
    last = msgspec.structs.replace(LAST, time_ms=NOON_MS + 2)
    assert reason(last=last) == "older_than_last"


def test_tick_in_the_same_millisecond_is_taken() -> None:
    assert reason(time_ms=NOON_MS) is None


def test_same_tick_again_is_refused() -> None:
    assert reason(bid=LAST.bid, ask=LAST.ask, time_ms=NOON_MS) == "duplicate"


def test_equal_trade_of_another_size_is_no_duplicate() -> None:
    assert reason(bid=LAST.bid, ask=LAST.ask, time_ms=NOON_MS, volume=2.0) is None


def test_first_tick_has_nothing_to_be_compared_with() -> None:
    assert reason(last=None, time_ms=NOON_MS - 9_000) is None


@pytest.mark.parametrize(
    ("closed_ms", "expected"),
    [(NOON_MS, None), (NOON_MS + MINUTE_MS, "too_late"), (NOON_MS - MINUTE_MS, None)],
)
def test_closed_minute_takes_nothing_more(closed_ms: int, expected: str | None) -> None:
    assert reason(closed_ms=closed_ms) == expected


def test_tick_of_a_minute_before_that_of_the_last_is_too_late() -> None:
    assert reason(time_ms=NOON_MS - 1) == "too_late"


def test_tick_that_was_taken_is_a_duplicate_however_late_it_comes_again() -> None:
    closed_ms = NOON_MS + MINUTE_MS
    assert reason(closed_ms=closed_ms, bid=LAST.bid, ask=LAST.ask, time_ms=NOON_MS) == "duplicate"


@pytest.mark.parametrize(
    ("at", "expected"),
    [("2026-11-17T21:59:59", None), ("2026-11-17T22:00:00", "market_closed"), ("2026-11-17T23:00:00", None)],
)
def test_tick_of_a_closed_market_is_refused_by_its_own_time(at: str, expected: str | None) -> None:
    assert reason(hours="metals", last=None, time_ms=ms(at)) == expected
