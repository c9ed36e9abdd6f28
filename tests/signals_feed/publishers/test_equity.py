"""The curve of results, and its picture."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import accumulate, pairwise

import pytest

from signals_feed.publishers.record import EDGE, HEIGHT, MOST_POINTS, WIDTH, EquityCurve, EquityPicture, draw
from tests.factories import NOON


def curve_of(*equity: Decimal | int) -> EquityCurve:
    curve = EquityCurve()
    for number, equity_r in enumerate(equity):
        curve.add(NOON + timedelta(minutes=number), Decimal(equity_r), number + 1)
    return curve


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, MOST_POINTS + 2, 5_003])
def test_a_long_curve_has_few_points_and_loses_neither_its_end_nor_its_extremes(count: int) -> None:
    equity = list(accumulate(Decimal(n * 7919 % 41 - 20) for n in range(count)))
    points = curve_of(*equity).points
    assert len(points) <= MOST_POINTS
    assert (points[-1].signals, points[-1].equity_r) == (count, equity[-1])
    assert points[-1].at == NOON + timedelta(minutes=count - 1)
    assert [point.equity_r for point in points] == [equity[point.signals - 1] for point in points]
    begins = [0, *(point.signals for point in points)]
    spans = [equity[begin:end] for begin, end in pairwise(begins)]
    assert [(point.low_r, point.high_r) for point in points] == [(min(span), max(span)) for span in spans]


def coordinates(picture: EquityPicture) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in picture.line.split())
    return [(float(x), float(y)) for x, y in pairs]


def test_picture_begins_at_zero_and_fills_its_room() -> None:
    picture = draw(curve_of(3, -1, 2).points)
    line = coordinates(picture)
    assert [x for x, _ in line] == pytest.approx(
        [EDGE, *(EDGE + (WIDTH - 2 * EDGE) * third / 3 for third in (1, 2, 3))], abs=0.1
    )
    heights = [y for _, y in line]
    assert (min(heights), max(heights)) == (EDGE, HEIGHT - EDGE)
    assert (picture.top_r, picture.bottom_r) == (Decimal(3), Decimal(-1))
    assert line[0][1] == float(picture.zero_y)
    # Zero is within it even if all is above it, and a curve that never moves can be drawn.
    assert float(draw(curve_of(2, 3).points).zero_y) == HEIGHT - EDGE
    assert len(coordinates(draw(curve_of(0).points))) == 2
