"""A flood writes few lines, a fault that lasts one a minute, and what is left out is counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from core.fault_log import LOG_REPEATED_EVERY_S, MOST_FAULTS, FaultsOfPages, LastingFault, UnexpectedFaults
from core.logs.sampled import MOST_CALLERS, TELL_REST_EVERY_S, Rate, SampledLog
from tests.patience import until

logger = logging.getLogger("tests.sampled")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, caplog: pytest.LogCaptureFixture) -> Iterator[SampledLog]:
    with caplog.at_level(logging.INFO, logger.name):
        yield SampledLog(logger, logging.INFO, Rate(2, 0.1), Rate(5, 1.0), clock=clock)


def flood(log: SampledLog, lines: int) -> None:
    for _ in range(lines):
        log.tell("401", "10.0.0.1", "flood", status=401)


def test_one_caller_in_a_flood_silences_no_other(log: SampledLog, caplog: pytest.LogCaptureFixture) -> None:
    flood(log, 1_000)
    log.tell("401", "10.0.0.2", "somebody else")
    assert caplog.messages == ["flood", "flood", "somebody else"]
    assert caplog.records[0].__dict__["status"] == 401


def test_many_callers_are_bounded_together(log: SampledLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_CALLERS + 100):
        log.tell("401", str(number), "flood")
    log.tell("404", "1", "another kind")
    assert caplog.messages == ["flood"] * 5 + ["another kind"]


def test_lines_come_again_as_time_passes(
    log: SampledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    flood(log, 3)
    log.forget()
    caplog.clear()
    for _ in range(100):
        clock.now_s += 1
        flood(log, 1)
    assert caplog.messages.count("flood") == 2 + 9


def test_what_was_left_out_is_told_with_its_number(
    log: SampledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    flood(log, 12)
    clock.now_s += TELL_REST_EVERY_S
    log.tell("404", "10.0.0.1", "later")
    rest = "10 more of 401 were not logged one by one"
    assert caplog.messages == ["flood", "flood", rest, "later"]
    assert caplog.records[2].__dict__["count"] == 10


async def test_end_of_a_flood_is_told_though_nobody_comes_after_it(
    log: SampledLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.logs.sampled.TELL_REST_EVERY_S", 0.01)
    flood(log, 3)
    await until(lambda: "1 more of 401 were not logged one by one" in caplog.messages)


def test_nothing_is_counted_of_a_level_that_is_off(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = SampledLog(logger, logging.DEBUG, Rate(1, 0), Rate(1, 0), clock=clock)
    with caplog.at_level(logging.INFO, logger.name):
        flood(log, 3)
    log.tell_rest()
    assert caplog.messages == []


# What Django logs of a session or a host, at times without saying of which request.
def refusals(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "accounts.access"]


def test_what_belongs_to_no_request_is_told_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        logging.getLogger("django.security.SuspiciousSession").error("Session data\n corrupted" + "x" * 1_000)
    records = refusals(caplog)
    assert 0 < len(records) < 20
    assert {record.levelname for record in records} == {"WARNING"}
    assert records[0].getMessage().startswith("SuspiciousSession: Session data\\n corrupted")
    assert len(records[0].getMessage()) < 300


def test_a_fault_of_theirs_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("evil")
    except ValueError as error:
        logging.getLogger("django.security.DisallowedHost").exception("Invalid host: %s", error)
    (record,) = refusals(caplog)
    assert record.exc_info is None
    assert record.getMessage() == "DisallowedHost: Invalid host: evil"


# A fault of ours is logged whole when it is new, and then with how often it came.
def raised(kind: type[Exception] = ValueError) -> Exception:
    try:
        raise kind("x")
    except kind as error:
        return error


def test_first_is_logged_and_the_next_ones_are_counted(clock: Clock) -> None:
    faults = UnexpectedFaults(clock)
    told = [faults.left_out(raised()) for _ in range(4)]
    clock.now_s += LOG_REPEATED_EVERY_S
    assert [*told, faults.left_out(raised())] == [0, None, None, None, 3]


def test_another_kind_or_place_is_new_and_memory_is_bounded(clock: Clock) -> None:
    faults = UnexpectedFaults(clock)
    faults.left_out(raised())
    with pytest.raises(ValueError, match="elsewhere") as caught:
        raise ValueError("elsewhere")
    new = [raised(KeyError), caught.value, ValueError()]
    assert [faults.left_out(error) for error in new] == [0, 0, 0]
    kinds = [type(f"Fault{number}", (Exception,), {}) for number in range(MOST_FAULTS + 1)]
    assert [faults.left_out(kind()) for kind in [*kinds, kinds[0]]] == [0] * (len(kinds) + 1)


@pytest.mark.parametrize(
    ("error", "let_through"), [(raised(ZeroDivisionError), [True, False, False]), (None, [True, True, True])]
)
def test_fault_of_a_page_is_let_through_once(error: Exception | None, let_through: list[bool]) -> None:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "x", (), info)
    record.status_code = 500
    assert [FaultsOfPages().filter(record) for _ in range(3)] == let_through


# What goes on being wrong.
TEXT = "Redis does not answer, limits are counted per process"


@pytest.fixture
def trouble(clock: Clock) -> LastingFault:
    return LastingFault(logging.getLogger("troubles"), TEXT, clock=clock)


def test_each_cause_is_told_once(trouble: LastingFault, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(10):
        trouble.tell(ConnectionRefusedError("refused"))
        trouble.tell(TimeoutError("late"))
    assert caplog.messages == [f"{TEXT}: refused", f"{TEXT}: late"]


def test_what_lasts_is_told_once_a_minute_with_how_often(
    trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for tenth in range(1250):
        clock.now_s = tenth / 10
        trouble.tell(OSError("away"))
    again = f"{TEXT}: away (599 times more since it was last told)"
    assert caplog.messages == [f"{TEXT}: away", again, again]


def test_the_end_is_told_once(trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    trouble.over()
    trouble.tell(OSError("away"))
    clock.now_s += 12
    for _ in range(5):
        trouble.over()
    assert caplog.messages == [f"{TEXT}: away", f"{TEXT}: over after 12 s"]


def test_what_comes_and_goes_is_not_told_each_time(
    trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(50):
        clock.now_s += 1
        trouble.tell(OSError("away"))
        trouble.over()
    assert caplog.messages == [f"{TEXT}: away", f"{TEXT}: over after 0 s"]
