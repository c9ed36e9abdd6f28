"""When a signal ends, at which price and with which result, against a few lines that reckon anew."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from signals_feed.exits import Exit, SignalLevels, by_minute, by_tick, result
from signals_feed.rules import (
    FARTHEST,
    Quoted,
    SignalRefused,
    SignalTerms,
    StoredMinute,
    StoredMinutes,
    check,
)

FAR = 10**12


def levels(direction: str = "buy", stop: int = 90, target: int = 110, **more: Any) -> SignalLevels:
    fields = {"since_ms": 0, "ends_ms": FAR} | more
    return SignalLevels(direction, Decimal(stop), Decimal(target), **fields)


SELL: dict[str, Any] = {"direction": "sell", "stop": 110, "target": 90}


def minute(
    low: int, high: int, opened: int | None = None, spread: int = 0, opened_ms: int = 0
) -> StoredMinute:
    prices = (opened or high, low, high, low + spread, high + spread)
    return StoredMinute(opened_ms, *map(Decimal, prices))


def quoted(bid: int, ask: int, time_ms: int = 0) -> Quoted:
    return Quoted(Decimal(bid), Decimal(ask), time_ms)


def found(exit_: Exit | None) -> tuple[str, int, str] | None:
    return None if exit_ is None else (exit_.reason, int(exit_.price), exit_.rule)


def test_if_one_tick_satisfies_both_the_stop_wins() -> None:
    assert found(by_tick(levels(stop=110, target=90), quoted(100, 101))) == ("stop_loss", 100, "stop")


@pytest.mark.parametrize(("time_ms", "reason"), [(999, None), (1000, "expired"), (5000, "expired")])
def test_what_is_over_leaves_at_the_first_tick(time_ms: int, reason: str | None) -> None:
    exit_ = by_tick(levels(ends_ms=1000), quoted(100, 101, time_ms))
    assert found(exit_) == (reason and (reason, 100, "current"))


@pytest.mark.parametrize(
    ("terms", "which", "expected"),
    [
        ({}, minute(95, 105), None),
        ({}, minute(95, 110), ("take_profit", 110, "target")),
        ({}, minute(90, 105), ("stop_loss", 90, "stop_at_worst")),
        ({}, minute(85, 105), ("stop_loss", 85, "stop_at_worst")),
        ({}, minute(70, 105, opened=88), ("stop_loss", 88, "stop_at_open")),
        ({}, minute(90, 110), ("stop_loss", 90, "stop_at_worst")),
        (SELL, minute(93, 105, spread=4), None),
        (SELL, minute(86, 105, spread=4), ("take_profit", 90, "target")),
        (SELL, minute(87, 105, spread=4), None),
        (SELL, minute(95, 106, spread=4), ("stop_loss", 110, "stop_at_worst")),
        (SELL, minute(80, 120, spread=4), ("stop_loss", 124, "stop_at_worst")),
    ],
)
def test_a_stored_minute(
    terms: dict[str, Any], which: StoredMinute, expected: tuple[str, int, str] | None
) -> None:
    assert found(by_minute(levels(**terms), which)) == expected


def test_minute_that_began_before_the_publication_judges_nothing() -> None:
    assert by_minute(levels(since_ms=1), minute(80, 120)) is None
    assert by_minute(levels(since_ms=0), minute(80, 120)) is not None


@pytest.mark.parametrize(
    ("ends_ms", "expected"), [(59_999, ("expired", 95, "worst")), (60_000, ("take_profit", 110, "target"))]
)
def test_target_in_the_minute_of_the_end_is_not_granted(ends_ms: int, expected: tuple[str, int, str]) -> None:
    assert found(by_minute(levels(ends_ms=ends_ms), minute(95, 115))) == expected


def test_mids_say_nothing_of_the_bid() -> None:
    mid = minute(80, 120)._replace(bid_open=None, bid_low=None, bid_high=None)
    assert by_minute(levels(), mid) is None
    assert by_minute(levels(**SELL), mid) is not None


@pytest.mark.parametrize(
    ("direction", "stop", "target", "entry", "beyond"),
    [("buy", 90, 150, 101, "101.01"), ("sell", 150, 50, 99, "98.99")],
)
def test_entry_is_at_most_a_hundredth_away(
    direction: str, stop: int, target: int, entry: int, beyond: str
) -> None:
    terms = SignalTerms("X", direction, *map(Decimal, (stop, target, entry)))
    assert check(terms, quoted(100, 100), 2) == (Decimal(entry), Decimal(100))
    with pytest.raises(SignalRefused, match=f"{FARTHEST:.0%} away") as refused:
        check(terms._replace(entry=Decimal(beyond)), quoted(100, 100), 2)
    assert refused.value.field == "entry"


# Random paths.
moves = st.integers(-6, 6) | st.sampled_from([-40, -25, 25, 40])
steps = st.lists(st.tuples(moves, st.integers(0, 5), st.integers(1, 50_000)), min_size=1, max_size=60)
directions = st.sampled_from(["buy", "sell"])
distances = st.integers(1, 30)
Tick = tuple[int, int, int]


def path(changes: Sequence[tuple[int, int, int]]) -> list[Tick]:
    """(time, bid, ask): small moves and jumps over several levels at once."""
    at_ms, bid, made = 0, 1000, []
    for move, spread, wait_ms in changes:
        at_ms, bid = at_ms + wait_ms, max(200, bid + move)
        made.append((at_ms, bid, bid + spread))
    return made


def placed(direction: str, risk: int, reward: int, ends_ms: int = FAR) -> SignalLevels:
    sign = 1 if direction == "buy" else -1
    return levels(direction, 1000 - sign * risk, 1000 + sign * reward, ends_ms=ends_ms)


def reckoned(terms: SignalLevels, ticks: Sequence[Tick]) -> tuple[str, int, str] | None:
    """The rules once more, in the words of the contract."""
    stop, target = int(terms.stop), int(terms.target)
    for at_ms, bid, ask in ticks:
        if terms.direction == "buy" and bid <= stop or terms.direction == "sell" and ask >= stop:
            return "stop_loss", bid if terms.direction == "buy" else ask, "stop"
        if terms.direction == "buy" and bid >= target or terms.direction == "sell" and ask <= target:
            return "take_profit", target, "target"
        if at_ms >= terms.ends_ms:
            return "expired", bid if terms.direction == "buy" else ask, "current"
    return None


def judged(terms: SignalLevels, ticks: Sequence[Tick]) -> tuple[str, int, str] | None:
    exits = (by_tick(terms, quoted(bid, ask, at_ms)) for at_ms, bid, ask in ticks)
    return found(next(filter(None, exits), None))


def stored(ticks: Sequence[Tick]) -> list[StoredMinute]:
    """The minutes of a path."""
    made: dict[int, list[Tick]] = {}
    for tick in ticks:
        made.setdefault(tick[0] // MINUTE_MS * MINUTE_MS, []).append(tick)
    minutes = []
    for opened_ms, own in made.items():
        _, bids, asks = zip(*own, strict=True)
        prices = bids[0], min(bids), max(bids), min(asks), max(asks)
        minutes.append(StoredMinute(opened_ms, *map(Decimal, prices)))
    return minutes


@settings(max_examples=100)
@given(steps, directions, distances, distances, st.integers(0, 400_000))
def test_ticks_end_a_signal_as_the_contract_says(
    changes: list[tuple[int, int, int]], direction: str, risk: int, reward: int, ends_ms: int
) -> None:
    terms = placed(direction, risk, reward, ends_ms)
    assert judged(terms, path(changes)) == reckoned(terms, path(changes))


def earned(direction: str, price: int) -> int:
    return price if direction == "buy" else -price


@settings(max_examples=100)
@given(steps, directions, distances, distances)
def test_minutes_never_pay_more_than_their_ticks_would_have(
    changes: list[tuple[int, int, int]], direction: str, risk: int, reward: int
) -> None:
    terms, ticks = placed(direction, risk, reward), path(changes)
    by_ticks, by_minutes = judged(terms, ticks), StoredMinutes(stored(ticks)).first_exit(terms)
    assert (by_ticks is None) == (by_minutes is None)
    if by_ticks is not None and by_minutes is not None:
        assert earned(direction, int(by_minutes[0].price)) <= earned(direction, by_ticks[1])
        assert by_minutes[0].reason == "stop_loss" or by_minutes[0].reason == by_ticks[0]


@settings(max_examples=100)
@given(steps, directions, distances, distances, st.integers(0, 300_000), st.integers(0, 400_000))
def test_passing_signals_over_finds_the_same_as_looking_at_every_minute(
    changes: list[tuple[int, int, int]], direction: str, risk: int, reward: int, since_ms: int, ends_ms: int
) -> None:
    terms = placed(direction, risk, reward, ends_ms)._replace(since_ms=since_ms)
    minutes = stored(path(changes))
    one_by_one = ((exit_, each) for each in minutes if (exit_ := by_minute(terms, each)))
    assert StoredMinutes(minutes).first_exit(terms) == next(one_by_one, None)


# What a closed signal earned.
prices = st.integers(1, 10**9).map(lambda points: Decimal(points).scaleb(-5))
pips = st.sampled_from([Decimal(pip) for pip in ("0.0001", "0.01", "0.1", "1", "0.00001", "0.25")])


def half_away(value: Fraction, decimals: int) -> Fraction:
    """Half of the last decimal goes away from nought, whichever side it is on."""
    scaled = abs(value) * 10**decimals
    return Fraction(floor(scaled + Fraction(1, 2)), 10**decimals) * (1 if value >= 0 else -1)


@settings(max_examples=300)
@given(directions, prices, prices, prices, prices, pips)
@example("buy", Decimal(1), Decimal("0.5"), Decimal(1), Decimal("1.000025"), Decimal("0.0001"))
@example("sell", Decimal(1), Decimal(2), Decimal(1), Decimal("1.000025"), Decimal("0.0001"))
@example("sell", Decimal(1), Decimal(2), Decimal(1), Decimal("1.000001"), Decimal("0.0001"))
def test_results_are_the_exact_fractions_rounded_once(
    direction: str, entry: Decimal, stop: Decimal, tradable: Decimal, close: Decimal, pip: Decimal
) -> None:
    assume(stop < entry if direction == "buy" else stop > entry)
    paid = Fraction(max(entry, tradable) if direction == "buy" else min(entry, tradable))
    gained = (Fraction(close) - paid) * (1 if direction == "buy" else -1)
    outcome = result(direction, entry, stop, tradable, close, pip)
    assert Fraction(outcome.pnl) == half_away(gained / Fraction(pip), 1)
    assert Fraction(outcome.pnl_percent) == half_away(gained / paid * 100, 4)
    assert Fraction(outcome.pnl_r) == half_away(gained / abs(paid - Fraction(stop)), 4)
    # Nought has no sign.
    assert outcome.pnl or not outcome.pnl.is_signed()
