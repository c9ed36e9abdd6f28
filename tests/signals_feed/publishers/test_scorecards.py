"""Scorecards against tables, and against sums written out anew."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signals_feed.publishers.equity import (
    EDGE,
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    EquityCurve,
    EquityPicture,
    draw,
)
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


def test_excursions_are_the_furthest_of_any_signal_whose_extremes_were_kept() -> None:
    card = Scorecard()
    extremes = ((None, None), ("0.5", "-1.2"), ("2.25", "0"), (None, None), ("0", "-0.3"))
    for best, worst in extremes:
        best_r, worst_r = (None if each is None else Decimal(each) for each in (best, worst))
        card.add(outcome(Decimal(0), best_r=best_r, worst_r=worst_r))
    assert (card.best_r, card.worst_r) == (Decimal("2.25"), Decimal("-1.2"))


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


@given(st.lists(results, min_size=1, max_size=60))
def test_numbers_are_those_of_sums_written_out(pnl_r: list[Decimal]) -> None:
    card = scorecard(*pnl_r)
    curve = [Fraction(0), *accumulate(map(Fraction, pnl_r))]
    falls = [high - low for end, low in enumerate(curve) for high in curve[: end + 1]]
    assert Fraction(card.all.total_r) == curve[-1]
    assert Fraction(card.drawdown.deepest_r) == max(falls)
    means = (card.all.expectancy_r, curve[-1]), (card.all.win_rate, sum(each > 0 for each in pnl_r))
    for mean, whole in means:
        assert abs(Fraction(mean or 0) - Fraction(whole) / len(pnl_r)) <= Fraction(1, 20_000)
    assert [Fraction(point.equity_r) for point in card.equity.points] == curve[1:]


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, MOST_POINTS + 2, 5_003])
def test_a_long_curve_has_few_points_and_loses_neither_its_end_nor_its_extremes(count: int) -> None:
    curve, equity = EquityCurve(), list(accumulate(Decimal(n * 7919 % 41 - 20) for n in range(count)))
    for number, equity_r in enumerate(equity):
        curve.add(NOON + timedelta(minutes=number), equity_r)
    points = curve.points
    assert len(points) <= MOST_POINTS
    assert (points[-1].signals, points[-1].equity_r) == (count, equity[-1])
    assert points[-1].closed_at == NOON + timedelta(minutes=count - 1)
    assert [point.equity_r for point in points] == [equity[point.signals - 1] for point in points]
    begins = [0, *(point.signals for point in points)]
    spans = [equity[begin:end] for begin, end in pairwise(begins)]
    assert [(point.low_r, point.high_r) for point in points] == [(min(span), max(span)) for span in spans]


def coordinates(picture: EquityPicture) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in picture.line.split())
    return [(float(x), float(y)) for x, y in pairs]


def test_picture_begins_at_zero_and_fills_its_room() -> None:
    picture = draw(scorecard(3, -4, 3).equity.points)
    line = coordinates(picture)
    assert [x for x, _ in line] == pytest.approx(
        [EDGE, *(EDGE + (WIDTH - 2 * EDGE) * third / 3 for third in (1, 2, 3))], abs=0.1
    )
    heights = [y for _, y in line]
    assert (min(heights), max(heights)) == (EDGE, HEIGHT - EDGE)
    assert (picture.top_r, picture.bottom_r) == (Decimal(3), Decimal(-1))
    assert line[0][1] == float(picture.zero_y)
    # Zero is within it even if all is above it, and a curve that never moves can be drawn.
    assert float(draw(scorecard(2, 1).equity.points).zero_y) == HEIGHT - EDGE
    assert len(coordinates(draw(scorecard(0).equity.points))) == 2
