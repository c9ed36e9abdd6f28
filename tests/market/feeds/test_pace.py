from __future__ import annotations

import pytest

from market.engine.feeds.pace import Pace


@pytest.mark.parametrize(
    ("failures", "wait_s"), [(0, 1.0), (1, 2.0), (5, 32.0), (6, 60.0), (7, 60.0), (10**9, 60.0)]
)
def test_wait_doubles_up_to_a_minute(failures: int, wait_s: float) -> None:
    assert Pace(chance=lambda: 0.0).retry_s(failures) == wait_s


@pytest.mark.parametrize(("drawn", "wait_s"), [(0.0, 4.0), (0.5, 3.0), (1.0, 2.0)])
def test_chance_shortens_a_wait_by_up_to_a_half(drawn: float, wait_s: float) -> None:
    assert Pace(chance=lambda: drawn).retry_s(2) == wait_s


def test_venue_has_time_to_answer_a_probe_before_it_counts_as_silent() -> None:
    pace = Pace()

    assert pace.silent_s >= 2 * pace.probe_s


def test_binance_never_hears_more_than_five_messages_a_second() -> None:
    assert 1 / Pace().say_gap_s < 5
