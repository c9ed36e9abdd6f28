from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.streams.protocol.reading import MAX_BYTES, Inbound
from market.streams.protocol.refusals import StreamRefused

NOW_MS = 1_795_000_000_000


def admitted(inbound: Inbound, times_ms: list[int]) -> list[int]:
    """Those that were taken."""
    taken = []
    for now_ms in times_ms:
        with contextlib.suppress(StreamRefused):
            inbound.take(now_ms)
            taken.append(now_ms)
    return taken


def test_16_kib_are_the_most() -> None:
    assert MAX_BYTES == 16_384


def test_20_at_once_are_taken_and_the_21st_is_not() -> None:
    inbound = Inbound()
    assert len(admitted(inbound, [NOW_MS] * 20)) == 20

    with pytest.raises(StreamRefused) as caught:
        inbound.take(NOW_MS)
    assert (caught.value.code, caught.value.close) == ("too_many_messages", 4413)


def test_ten_a_second_go_on_for_ever() -> None:
    times_ms = [NOW_MS + 100 * number for number in range(1000)]

    assert admitted(Inbound(), times_ms) == times_ms


def test_eleven_a_second_come_to_an_end() -> None:
    times_ms = [NOW_MS + 90 * number for number in range(1000)]

    assert len(admitted(Inbound(), times_ms)) < 1000


def test_after_a_burst_one_comes_back_each_tenth_of_a_second() -> None:
    inbound = Inbound()
    admitted(inbound, [NOW_MS] * 20)

    assert admitted(inbound, [NOW_MS + 99]) == []
    assert admitted(inbound, [NOW_MS + 100, NOW_MS + 100]) == [NOW_MS + 100]


def test_silence_gives_no_more_than_a_burst() -> None:
    inbound = Inbound()
    admitted(inbound, [NOW_MS] * 20)

    assert len(admitted(inbound, [NOW_MS + 3_600_000] * 30)) == 20


@given(st.lists(st.integers(0, 300), max_size=120))
def test_no_stretch_of_time_holds_more_than_the_burst_and_its_rate(steps_ms: list[int]) -> None:
    times_ms = [NOW_MS + sum(steps_ms[:number]) for number in range(len(steps_ms))]
    taken = admitted(Inbound(), times_ms)

    for first, start_ms in enumerate(taken):
        for last, end_ms in enumerate(taken[first:], first):
            assert last - first + 1 <= 20 + (end_ms - start_ms) / 100


def test_tenth_invalid_message_within_60_seconds_is_the_last_straw() -> None:
    inbound = Inbound()

    assert [inbound.is_one_too_many(NOW_MS + 6_000 * number) for number in range(10)] == [False] * 9 + [True]


@pytest.mark.parametrize(("after_ms", "is_last"), [(59_999, True), (60_000, False)])
def test_invalid_messages_are_forgotten_after_60_seconds(after_ms: int, is_last: bool) -> None:
    inbound = Inbound()
    for _ in range(9):
        assert not inbound.is_one_too_many(NOW_MS)

    assert inbound.is_one_too_many(NOW_MS + after_ms) is is_last
