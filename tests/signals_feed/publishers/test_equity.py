"""The picture of an equity curve, as coordinates."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from signals_feed.publishers.equity import EDGE, HEIGHT, MOST_ROWS, WIDTH, EquityPoint, draw, table_rows
from tests.factories import NOON


def points(*equity_r: int) -> list[EquityPoint]:
    return [
        EquityPoint(number, NOON + timedelta(hours=number), *[Decimal(each)] * 3)
        for number, each in enumerate(equity_r, 1)
    ]


def coordinates(line: str) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in line.split())
    return [(float(x), float(y)) for x, y in pairs]


def test_line_begins_at_zero_and_ends_at_the_right_edge() -> None:
    line = coordinates(draw(points(1, -1)).line)
    assert [x for x, _ in line] == [EDGE, WIDTH / 2, WIDTH - EDGE]
    assert line[0][1] == HEIGHT / 2


def test_highest_is_at_the_top_and_lowest_at_the_bottom() -> None:
    picture = draw(points(3, -1, 2))
    heights = [y for _, y in coordinates(picture.line)]
    assert (min(heights), max(heights)) == (EDGE, HEIGHT - EDGE)
    assert (picture.top_r, picture.bottom_r) == (Decimal(3), Decimal(-1))


def test_zero_is_within_the_picture_even_if_all_is_above_it() -> None:
    picture = draw(points(2, 3))
    assert float(picture.zero_y) == HEIGHT - EDGE


def test_a_curve_that_never_moves_can_be_drawn() -> None:
    assert len(coordinates(draw(points(0)).line)) == 2


def test_the_table_is_short_and_has_the_last_point() -> None:
    many = points(*range(1, 1_001))
    shown = table_rows(many)
    assert len(shown) <= MOST_ROWS
    assert shown[-1] == many[-1]
    assert [point.signals for point in shown] == sorted(point.signals for point in shown)
