"""A fault of ours is logged whole when it is new, and then with how often it came."""

from __future__ import annotations

import logging

import pytest

from core.fault_log import LOG_REPEATED_EVERY_S, MOST_FAULTS, FaultsOfPages, UnexpectedFaults

from .test_sampled import Clock


def raised(kind: type[Exception] = ValueError) -> Exception:
    try:
        raise kind("x")
    except kind as error:
        return error


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def faults(clock: Clock) -> UnexpectedFaults:
    return UnexpectedFaults(clock)


def test_first_is_logged_and_the_next_ones_are_counted(faults: UnexpectedFaults, clock: Clock) -> None:
    told = [faults.left_out(raised()) for _ in range(4)]
    clock.now_s += LOG_REPEATED_EVERY_S
    assert [*told, faults.left_out(raised())] == [0, None, None, None, 3]


def test_another_kind_or_place_is_new(faults: UnexpectedFaults) -> None:
    faults.left_out(raised())
    assert faults.left_out(raised(KeyError)) == 0
    with pytest.raises(ValueError, match="elsewhere") as caught:
        raise ValueError("elsewhere")
    assert faults.left_out(caught.value) == 0


def test_fault_that_was_never_raised_has_no_place(faults: UnexpectedFaults) -> None:
    assert faults.left_out(ValueError()) == 0


def test_memory_is_bounded(faults: UnexpectedFaults) -> None:
    kinds = [type(f"Fault{number}", (Exception,), {}) for number in range(MOST_FAULTS + 1)]
    assert [faults.left_out(kind()) for kind in kinds] == [0] * len(kinds)
    assert faults.left_out(kinds[0]()) == 0


def record_of(error: Exception | None, status: int) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "x", (), info)
    record.status_code = status
    return record


def test_fault_of_a_page_is_let_through_once() -> None:
    error = raised(ZeroDivisionError)
    assert [FaultsOfPages().filter(record_of(error, 500)) for _ in range(3)] == [True, False, False]


def test_line_of_a_page_without_a_fault_is_let_through() -> None:
    assert [FaultsOfPages().filter(record_of(None, 500)) for _ in range(2)] == [True, True]
