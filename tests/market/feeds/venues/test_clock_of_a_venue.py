"""The time base of one connection, event by event."""

from __future__ import annotations

import pytest

from market.engine.venues.time_base import (
    AGREEING,
    ANSWERED_MS,
    BELIEVED_MS,
    LEAST_OF_MS,
    UNTIMED_MS,
    TimeBase,
)

from .fakes.venue import NOON_MS


def heard(*events: tuple[int, int]) -> TimeBase:
    """Each event's time and its receipt, after noon."""
    base = TimeBase()
    for event_ms, received_ms in events:
        base.receive(NOON_MS + received_ms)
        base.hear(NOON_MS + event_ms, NOON_MS + received_ms)
    return base


@pytest.mark.parametrize(
    ("events", "ahead_ms"),
    [
        # The least of the lags, for a while.
        ([(0, 30), (1_000, 1_010), (2_000, 9_000)], 10),
        ([(0, 10), *((n * LEAST_OF_MS, n * LEAST_OF_MS + 500) for n in (1, 2))], 500),
        # One event far ahead is not believed, three that agree are.
        ([(0, 10), (BELIEVED_MS + 100, 20)], 10),
        ([(0, 10), *[(3_600_000 + n, 20 + n) for n in range(AGREEING)]], 20 - 3_600_000),
    ],
)
def test_clocks_are_as_far_apart_as_the_quickest_message_says(
    events: list[tuple[int, int]], ahead_ms: int
) -> None:
    base = heard(*events)
    assert base.is_known
    assert base.ahead_ms == ahead_ms


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
def test_line_that_is_always_slow_is_no_clock_that_is_ahead(ahead_ms: int) -> None:
    """What was asked for each second is answered half a minute later, as is all that the venue tells."""
    base = TimeBase()
    for sent_ms in range(0, 4 * LEAST_OF_MS, 1_000):
        asked_ms, late_ms = NOON_MS + sent_ms + ahead_ms, 30_000
        base.ask(asked_ms)
        if sent_ms >= late_ms:
            base.answer()
            base.receive(asked_ms)
            base.hear(NOON_MS + sent_ms - late_ms + 100, asked_ms)
    assert ahead_ms <= base.ahead_ms <= ahead_ms + ANSWERED_MS


def test_other_time_than_ours_is_doubted_until_three_events_agree() -> None:
    events = [(n, 3_600_000 + n) for n in range(AGREEING)]
    first, last = heard(*events[:-1]), heard(*events)
    assert (first.is_known, first.is_doubted, first.source_ms) == (False, True, 0)
    assert (last.is_known, last.is_doubted, last.ahead_ms) == (True, False, 3_600_000)


def test_venue_that_never_says_a_time_is_taken_to_have_ours() -> None:
    base = TimeBase()
    for received_ms in (0, UNTIMED_MS, UNTIMED_MS + 1):
        assert not base.is_known
        base.receive(NOON_MS + received_ms)
    assert base.is_known
    assert base.date(NOON_MS + UNTIMED_MS + 1) == NOON_MS + UNTIMED_MS + 1
