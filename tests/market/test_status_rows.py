"""The rows of the market status, as staff read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from market.admin import day_row
from market.prices.history import DayStatistics

pytestmark = pytest.mark.services


@pytest.mark.parametrize(
    ("percent", "text", "direction"),
    [
        (0.004, "0.00%", "flat"),
        (-0.004, "0.00%", "flat"),
        (0.01, "+0.01%", "up"),
        (-0.01, "\u22120.01%", "down"),
    ],
)
def test_change_that_reads_as_none_has_no_direction(percent: float, text: str, direction: str) -> None:
    day = DayStatistics(1.0, 1.1, 0.9, 1 + percent / 100, percent / 100, percent, 5)
    row = day_row(cast(Any, SimpleNamespace(day=day, facts=SimpleNamespace(digits=5))))
    assert row is not None
    assert (row["change"], row["direction"]) == (text, direction)
