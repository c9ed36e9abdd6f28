"""The door: which of an instrument's feeds is let in, each reason for which a tick is refused, and prices too
far from the last one to be believed at once."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.engine.admission import (
    AGREEING,
    FUTURE_MS,
    GONE_MS,
    MOST_COMPLAINTS,
    STEADY_MS,
    FeedChoice,
    FeedState,
    Outliers,
    reason_to_refuse,
)
from market.engine.engine import Engine
from market.engine.status import status_of
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS, make_facts, ms

LAST = Tick("EURUSD", 1.08, 1.0802, NOON_MS, 1.0)
SAME = {"bid": LAST.bid, "ask": LAST.ask, "time_ms": NOON_MS}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        *(({field: value}, "not_finite") for field in ("bid", "ask", "volume") for value in (nan, inf, -inf)),
        *(({"bid": bid}, "not_positive") for bid in (0.0, -1.0)),
        ({"bid": -2.0, "ask": -1.0}, "not_positive"),
        ({"volume": -0.1}, "not_positive"),
        # Less than half a point: it would be shown as nought.
        ({"bid": 0.000004}, "not_positive"),
        # What the database has no room for.
        *((more, "too_high") for more in ({"ask": 1e10}, {"bid": 1e10, "ask": 2e10}, {"volume": 1e10})),
        *(({"price": price, "side": 1}, "not_positive") for price in (0.0, -5.0)),
        ({"price": nan, "side": 1}, "not_finite"),
        ({"price": 1e10, "side": 1}, "too_high"),
        ({"price": 1.2, "side": 1}, None),
        ({"bid": 1.0813}, "crossed"),
        ({"bid": 1.0812}, None),
        ({"time_ms": NOON_MS + 10 + FUTURE_MS}, None),
        ({"time_ms": NOON_MS + 11 + FUTURE_MS}, "future"),
        ({"last": msgspec.structs.replace(LAST, time_ms=NOON_MS + 2)}, "older_than_last"),
        ({"time_ms": NOON_MS}, None),
        (SAME, "duplicate"),
        ({**SAME, "closed_ms": NOON_MS + MINUTE_MS}, "duplicate"),
        ({**SAME, "volume": 2.0}, None),
        ({"last": None, "time_ms": NOON_MS - 9_000}, None),
        ({"closed_ms": NOON_MS}, None),
        ({"closed_ms": NOON_MS + MINUTE_MS}, "too_late"),
        # Of the minute before that of the last.
        ({"time_ms": NOON_MS - 1}, "too_late"),
        *(
            ({"hours": "metals", "last": None, "time_ms": ms(f"2026-11-17T{at}")}, reason)
            for at, reason in (("21:59:59", None), ("22:00:00", "market_closed"), ("23:00:00", None))
        ),
    ],
)
def test_tick_is_refused_for_one_reason(changes: dict[str, Any], reason: str | None) -> None:
    values: dict[str, Any] = {"bid": 1.081, "ask": 1.0812, "time_ms": NOON_MS + 1, "volume": 1.0} | changes
    last, closed_ms = values.pop("last", LAST), values.pop("closed_ms", 0)
    facts = make_facts(hours=values.pop("hours", "always"))

    assert reason_to_refuse(Tick("EURUSD", **values), last, closed_ms, facts, NOON_MS + 10) == reason


QUIET = [PriceBar(NOON_MS - n * MINUTE_MS, 10.0, 10.001, 10.0, 10.0, 1.0, 10.0, 10.0) for n in range(10)]
RANGES = [PriceBar(0, 10.0, 10.0 + each, 10.0, 10.0, 1.0, 10.0, 10.0) for each in (0.05, 0.15)]


def at(mid: float, after_ms: int = 0, *, spread: float = 0.0) -> Tick:
    return Tick("X", mid - spread / 2, mid + spread / 2, NOON_MS + after_ms, 1.0)


def prices(*mids: float) -> list[Tick]:
    return [at(mid, n) for n, mid in enumerate(mids)]


def trade(price: float, after_ms: int, mid: float = 10.0) -> Tick:
    return msgspec.structs.replace(at(mid, after_ms), side=1, price=price)


def taken(*ticks: Tick, minutes: list[PriceBar] = QUIET, hours: str = "always", **facts: Any) -> list[bool]:
    outliers, known, last = Outliers(), make_facts("X", hours, **{"outlier_percent": 0.5} | facts), None
    found = []
    for tick in ticks:
        found.append(outliers.admit(tick, last, minutes, known, tick.time_ms))
        last = tick if found[-1] else last
    return found


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        (prices(1_000_000.0), [True]),
        (prices(10.0, 1_000_000.0, 10.0), [True, False, True]),
        *((prices(10.0, mid), [True, True]) for mid in (10.049, 9.951)),
        *((prices(10.0, mid), [True, False]) for mid in (10.051, 9.949)),
        # The price of a trade is held to the quote that it came with, and confirms nothing.
        ([at(10.0), trade(10.049, 1)], [True, True]),
        *(([at(10.0), trade(price, 1)], [True, False]) for price in (10.051, 9.949, 1e6)),
        ([at(10.0), *(trade(20.0, n) for n in range(1, 6)), at(10.0, 9)], [True, *[False] * 5, True]),
        ([at(10.0), *(trade(20.0, n, mid=20.0) for n in range(1, 4))], [True, False, False, True]),
        # Three that agree are a new level.
        (prices(10.0, 20.0, 20.01, 20.02, 20.0), [True, False, False, True, True]),
        (prices(10.0, 20.0, 30.0, 20.0, 30.0), [True] + [False] * 4),
        (prices(10.0, 20.0, 20.0, 10.0, 20.0, 20.0), [True, False, False, True, False, False]),
        # After a stale quote.
        ([at(10.0), at(20.0, 60_000)], [True, False]),
        ([at(10.0), at(20.0, 60_001)], [True, True]),
    ],
)
def test_price_that_is_too_far_from_the_last_is_refused(ticks: list[Tick], expected: list[bool]) -> None:
    assert taken(*ticks) == expected
    assert all(taken(*ticks, outlier_percent=0.0))


@pytest.mark.parametrize(("mid", "is_taken"), [(10.99, True), (11.02, False)])
def test_fifty_median_spreads_are_believed(mid: float, is_taken: bool) -> None:
    usual = [at(10.0, n, spread=0.02) for n in range(9)]

    assert taken(*usual, at(10.0, 10, spread=5.0), at(mid, 11, spread=0.02))[-1] is is_taken


@pytest.mark.parametrize(("mid", "is_taken"), [(11.49, True), (11.51, False)])
def test_fifteen_mean_ranges_of_a_minute_are_believed(mid: float, is_taken: bool) -> None:
    assert taken(*prices(10.0, mid), minutes=RANGES) == [True, is_taken]


def test_first_tick_after_the_opening_is_taken() -> None:
    opens_ms = ms("2026-11-18T23:00") - NOON_MS
    ticks = at(10.0, opens_ms - 60 * MINUTE_MS - 1), at(20.0, opens_ms), at(40.0, opens_ms + 1)

    assert taken(*ticks, hours="metals", stale_after_s=86_400) == [True, True, False]


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40))
def test_no_price_is_taken_far_from_the_last_but_by_its_third_confirmation(mids: list[float]) -> None:
    kept = [n for n, is_taken in enumerate(taken(*prices(*mids), minutes=[])) if is_taken]

    for before, n in zip(kept, kept[1:], strict=False):
        is_near = abs(mids[n] - mids[before]) <= mids[before] * 0.005
        assert is_near or n - before >= AGREEING


@pytest.mark.django_db
def test_engine_counts_outliers_and_a_feed_that_has_no_say_confirms_none() -> None:
    make_instrument("EURUSD", outlier_percent="0.5", source="push:desk", fallback="push:other")
    engine = Engine(Prices("bid"))

    def take(origin: str, first_ms: int, *mids: float) -> list[str | None]:
        ticks = [Tick("EURUSD", mid, mid, NOON_MS + first_ms + n, 1.0) for n, mid in enumerate(mids)]
        return engine.take(origin, ticks, NOON_MS + first_ms)

    assert take("push:desk", 0, 10.0, 1e6, 10.001) == [None, "outlier", None]
    (told,) = status_of(engine, NOON_MS, "", "").instruments
    assert (told.outliers, told.outlier_price, told.outlier_ms) == (1, 1e6, NOON_MS + 1)
    assert engine.feed_state("push:desk").refused == {"outlier": 1}
    assert take("push:other", 10, 20.0, 20.0, 20.0) == ["standby"] * 3
    assert take("push:desk", 20, 20.0) == ["outlier"]


@pytest.mark.parametrize(
    ("heard_s", "is_alive"),
    [
        ([], False),
        ([-10, 20], True),
        ([1, 20], False),
        ([-30, 0], True),
        ([-30, -1], False),
        # Silence is not made good by what comes after it.
        ([-30, 70], False),
    ],
)
def test_feed_was_alive_that_was_heard_before_a_minute_and_not_silent_for_one(
    heard_s: list[int], is_alive: bool
) -> None:
    assert was_alive(heard_at(*heard_s)) is is_alive


def heard_at(*moments_s: int, feed_state: FeedState | None = None) -> FeedState:
    feed_state = feed_state or FeedState()
    for moment_s in moments_s:
        feed_state.heard(NOON_MS + moment_s * 1000)
    return feed_state


def was_alive(feed_state: FeedState, minute: int = 0) -> bool:
    start_ms = NOON_MS + minute * MINUTE_MS
    return feed_state.was_alive(start_ms, start_ms + MINUTE_MS)


def test_lost_is_not_alive_until_it_was_heard_for_a_whole_minute() -> None:
    feed_state = heard_at(-30, 10)
    feed_state.lost()
    heard_at(20, 70, feed_state=feed_state)

    assert [was_alive(feed_state, minute) for minute in (0, 1)] == [False, True]


def test_what_staff_should_do_something_about_is_kept_once_and_until_the_connection_is_lost() -> None:
    feed_state = FeedState()
    for what in ["DOGEUSDX is not served"] * 2 + [f"S{number} is not served" for number in range(100)]:
        feed_state.refuse("unknown_symbol", what)
    feed_state.refuse("malformed", "")

    assert feed_state.refused == {"unknown_symbol": 102, "malformed": 1}
    assert next(iter(feed_state.complaints)) == "DOGEUSDX is not served"
    assert len(feed_state.complaints) == MOST_COMPLAINTS
    feed_state.lost(7, "gone")
    assert not feed_state.complaints


FACTS = make_facts()
STALE_MS, BACK_MS = FACTS.stale_after_s * 1000, FACTS.stale_after_s * 1000 + 60_000


def make_choice(*feeds: str) -> FeedChoice:
    return FeedChoice(feeds or ("kraken", "binance"), NOON_MS)


def admit(choice: FeedChoice, origin: str, after_ms: int, **feed_states: FeedState) -> str | None:
    return choice.admit(origin, NOON_MS + after_ms, FACTS, feed_states)


@pytest.mark.parametrize(
    ("feed", "origin", "reason"),
    [
        ("kraken", "oanda", "not_its_source"),
        ("push", "push:desk", None),
        ("push:desk", "push:desk", None),
        *(("push:desk", origin, "not_its_source") for origin in ("push:other", "push:desktop", "push")),
    ],
)
def test_push_may_be_of_anybody_or_of_one_key(feed: str, origin: str, reason: str | None) -> None:
    assert admit(make_choice(feed), origin, 0) == reason


@pytest.mark.parametrize(
    ("after_ms", "is_lost", "reason"),
    [
        (1, False, "standby"),
        (STALE_MS, False, "standby"),
        (STALE_MS + 1, False, None),
        (GONE_MS, True, "standby"),
        (GONE_MS + 1, True, None),
    ],
)
def test_fallback_takes_over_once_the_source_is_stale_or_sooner_if_it_is_lost(
    after_ms: int, is_lost: bool, reason: str | None
) -> None:
    choice, kraken = make_choice(), FeedState()
    assert admit(choice, "kraken", 0) is None
    if is_lost:
        kraken.lost(NOON_MS, "closed")

    assert admit(choice, "binance", after_ms, kraken=kraken) == reason


@pytest.mark.parametrize(
    ("step_ms", "reasons", "switches"),
    [(1000, ["standby"] * 10 + [None], 2), (STEADY_MS + 1, ["standby"] * 11, 1)],
)
def test_source_that_is_back_must_hold_before_it_is_let_in_again(
    step_ms: int, reasons: list[str | None], switches: int
) -> None:
    choice = make_choice()
    admit(choice, "kraken", 0)
    assert admit(choice, "binance", STALE_MS + 1) is None
    assert (choice.feed, choice.switches, choice.switched_ms) == ("binance", 1, NOON_MS + STALE_MS + 1)

    assert [admit(choice, "kraken", BACK_MS + number * step_ms) for number in range(11)] == reasons
    assert choice.switches == switches


def test_no_source_is_expected_to_send_before_the_market_opens() -> None:
    stock, opens_ms, choice = make_facts(hours="stock"), NOON_MS + 9_000_000, make_choice()

    assert stock.hours.session_at(opens_ms - 1) is None
    for after_ms, reason in ((0, "standby"), (STALE_MS, "standby"), (STALE_MS + 1, None)):
        assert choice.admit("binance", opens_ms + after_ms, stock, {}) == reason
