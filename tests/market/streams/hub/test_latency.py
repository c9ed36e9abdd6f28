"""How long ticks took, in whole milliseconds of a minute."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from market.streams.hub.delivery import LONGEST_MS, WriteLatency
from tests.market.ticking import NOON_MS


def measured(*took_ms: int) -> WriteLatency:
    """All in the minute that begins at noon."""
    latency = WriteLatency()
    for each in took_ms:
        latency.add(NOON_MS - each, NOON_MS)
    return latency


@pytest.mark.parametrize(
    ("took_ms", "expected"),
    [
        ([7], [7, 7, 7]),
        ([1, 9], [1, 9, 9]),
        (range(1, 101), [50, 95, 99]),
        ([2] * 99 + [80], [2, 2, 2]),
        ([2] * 49 + [80] * 51, [80, 80, 80]),
    ],
)
def test_quantile_is_the_smallest_that_so_many_do_not_exceed(took_ms: list[int], expected: list[int]) -> None:
    assert measured(*took_ms).quantiles(NOON_MS + MINUTE_MS) == dict(
        zip((0.5, 0.95, 0.99), expected, strict=True)
    )


@pytest.mark.parametrize(
    ("later_ms", "is_there"),
    [
        (0, False),
        (MINUTE_MS - 1, False),
        (MINUTE_MS, True),
        (2 * MINUTE_MS - 1, True),
        (2 * MINUTE_MS, False),
    ],
)
def test_quantiles_are_those_of_the_last_full_minute(later_ms: int, is_there: bool) -> None:
    assert bool(measured(7).quantiles(NOON_MS + later_ms)) is is_there


def test_next_minute_does_not_change_what_is_told_of_the_last() -> None:
    latency = measured(7)
    latency.add(NOON_MS, NOON_MS + MINUTE_MS)

    assert latency.quantiles(NOON_MS + MINUTE_MS)[0.5] == 7


def test_count_and_sum_go_on_over_the_minutes() -> None:
    latency = measured(7, 8)
    latency.add(NOON_MS, NOON_MS + 5 * MINUTE_MS)

    assert (latency.count, latency.sum_ms) == (3, 15 + LONGEST_MS)


def test_clock_that_is_behind_the_engines_makes_no_negative_time() -> None:
    assert measured(-40).quantiles(NOON_MS + MINUTE_MS)[0.5] == 0


def test_clock_that_is_set_back_begins_a_minute_anew() -> None:
    latency = measured(7)
    latency.add(NOON_MS - MINUTE_MS - 3, NOON_MS - MINUTE_MS)

    assert latency.quantiles(NOON_MS)[0.5] == 3
