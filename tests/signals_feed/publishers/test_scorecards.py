"""Scorecards against tables, and against sums written out anew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signals_feed.publishers.equity import MOST_POINTS, EquityCurve
from signals_feed.publishers.scorecards import Scorecard, ScoredSignal
from tests.factories import NOON

pytestmark = pytest.mark.services

results = st.integers(-50_000, 50_000).map(lambda steps: Decimal(steps) / 10_000)


def outcome(pnl_r: Decimal, number: int = 0, **changes: object) -> ScoredSignal:
    at = NOON + timedelta(minutes=number)
    kept = ScoredSignal("EURUSD", "take_profit", at, pnl_r, max(pnl_r, Decimal(0)), min(pnl_r, Decimal(0)))
    return kept._replace(**changes)  # type: ignore[arg-type]


def scorecard(*pnl_r: Decimal | str | int) -> Scorecard:
    card = Scorecard()
    for number, each in enumerate(pnl_r):
        card.add(outcome(Decimal(each), number))
    return card


def test_nobody_has_a_rate_before_the_first_signal_is_closed() -> None:
    card = Scorecard()
    assert (card.all.win_rate, card.all.expectancy_r, card.best_r, card.worst_r) == (None,) * 4
    assert card.too_few
    assert card.equity.points == []


@pytest.mark.parametrize(
    ("pnl_r", "win_rate"),
    [([1], "1"), ([-1], "0"), ([1, -1, 2, "-0.5"], "0.5"), ([1, 1, -1], "0.6667"), ([0], "0")],
)
def test_win_rate_is_the_share_of_signals_that_gained(pnl_r: list[object], win_rate: str) -> None:
    assert scorecard(*pnl_r).all.win_rate == Decimal(win_rate)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pnl_r", "expectancy"),
    [(["2", "-1"], "0.5"), (["1", "1", "-1"], "0.3333"), (["-1", "-1", "0.5"], "-0.5")],
)
def test_expectancy_is_the_mean_result_in_r(pnl_r: list[str], expectancy: str) -> None:
    assert scorecard(*pnl_r).all.expectancy_r == Decimal(expectancy)


@pytest.mark.parametrize(
    ("pnl_r", "deepest", "longest"),
    [
        ([1, 1, 1], "0", 0),
        # The first signals may lose: the curve begins at zero.
        ([-1, -1, 3], "2", 2),
        ([3, -1, "-0.5", 2, -1], "1.5", 2),
        ([2, -1, "0.5", "0.25", "0.25", -1], "1", 3),
        ([5, -1, -1, -1, -1, 4, -3], "4", 4),
    ],
)
def test_drawdown_is_the_deepest_fall_and_the_longest_stay_below_a_peak(
    pnl_r: list[object], deepest: str, longest: int
) -> None:
    drawdown = scorecard(*pnl_r).drawdown  # type: ignore[arg-type]
    assert (drawdown.deepest_r, drawdown.longest) == (Decimal(deepest), longest)


def test_copy_stays_as_it_is_when_signals_are_added() -> None:
    card = scorecard(1, -1)
    copy, same = card.copy(), scorecard(1, -1)
    assert copy == same
    card.add(outcome(Decimal(-2), 2))
    assert copy == same
    assert card != same


def test_excursions_are_the_furthest_of_any_signal() -> None:
    card = Scorecard()
    for best, worst in (("0.5", "-1.2"), ("2.25", "0"), ("0", "-0.3")):
        card.add(outcome(Decimal(0), best_r=Decimal(best), worst_r=Decimal(worst)))
    assert (card.best_r, card.worst_r) == (Decimal("2.25"), Decimal("-1.2"))


def test_signal_whose_extremes_nobody_kept_has_no_excursion() -> None:
    card = Scorecard()
    for best, worst in ((None, None), (Decimal(1), Decimal(-1)), (None, None)):
        card.add(outcome(Decimal(0), best_r=best, worst_r=worst))
    assert (card.best_r, card.worst_r) == (Decimal(1), Decimal(-1))


def test_each_symbol_and_reason_has_a_record_of_its_own() -> None:
    card = Scorecard()
    for symbol, reason, pnl_r in (
        ("EURUSD", "expired", 1),
        ("XAUUSD", "cancelled", -1),
        ("EURUSD", "manual", -3),
    ):
        card.add(outcome(Decimal(pnl_r), symbol=symbol, reason=reason))
    assert {symbol: (record.signals, record.total_r) for symbol, record in card.by_symbol.items()} == {
        "EURUSD": (2, Decimal(-2)),
        "XAUUSD": (1, Decimal(-1)),
    }
    assert card.by_reason == {"expired": 1, "cancelled": 1, "manual": 1}


@pytest.mark.parametrize(("count", "too_few"), [(29, True), (30, False)])
def test_fewer_than_thirty_are_too_few(count: int, too_few: bool) -> None:
    assert scorecard(*[1] * count).too_few is too_few


@given(st.lists(results, min_size=1, max_size=60))
def test_numbers_are_those_of_sums_written_out(pnl_r: list[Decimal]) -> None:
    card = scorecard(*pnl_r)
    curve = [Fraction(0), *accumulate(map(Fraction, pnl_r))]
    falls = [high - low for end, low in enumerate(curve) for high in curve[: end + 1]]
    assert Fraction(card.all.total_r) == curve[-1]
    assert Fraction(card.drawdown.deepest_r) == max(falls)
    assert abs(Fraction(card.all.expectancy_r or 0) - curve[-1] / len(pnl_r)) <= Fraction(1, 20_000)
    assert [Fraction(point.equity_r) for point in card.equity.points] == curve[1:]


def curve_of(pnl_r: Sequence[Decimal]) -> EquityCurve:
    curve = EquityCurve()
    for number, equity_r in enumerate(accumulate(pnl_r)):
        curve.add(NOON + timedelta(minutes=number), equity_r)
    return curve


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, MOST_POINTS + 2, 5_003])
def test_a_long_curve_has_few_points_and_loses_neither_its_end_nor_its_extremes(count: int) -> None:
    pnl_r = [Decimal(number * 7919 % 41 - 20) for number in range(count)]
    equity, points = list(accumulate(pnl_r)), curve_of(pnl_r).points
    assert len(points) <= MOST_POINTS
    assert (points[-1].signals, points[-1].equity_r) == (count, equity[-1])
    assert points[-1].closed_at == NOON + timedelta(minutes=count - 1)
    assert [point.equity_r for point in points] == [equity[point.signals - 1] for point in points]
    begins = [0, *(point.signals for point in points)]
    spans = [equity[begin:end] for begin, end in pairwise(begins)]
    assert [(point.low_r, point.high_r) for point in points] == [(min(span), max(span)) for span in spans]
