"""A flood writes few lines, a fault that lasts one a minute, and what is left out is counted."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from threading import Lock, Thread

import pytest

from core.fault_log import (
    LOG_REPEATED_EVERY_S,
    MOST_FAULTS,
    FaultsOfPages,
    LastingFault,
    RepeatedWarning,
    UnexpectedFaults,
)
from core.logs import MOST_CALLERS, REFUSALS, TELL_REST_EVERY_S, Rate, ReasonOfRefusal, SampledLog
from tests.patience import PATIENCE_S, until

logger = logging.getLogger("tests.sampled")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, logger.name):
        yield
    logger.filters.clear()


@pytest.fixture
def log(clock: Clock) -> SampledLog:
    return SampledLog(logger, logging.INFO, Rate(2, 0.1), Rate(5, 1.0), clock=clock)


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
    monkeypatch.setattr("core.logs.TELL_REST_EVERY_S", 0.01)
    flood(log, 3)
    await until(lambda: "1 more of 401 were not logged one by one" in caplog.messages)


def test_nothing_is_counted_of_a_level_that_is_off(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = SampledLog(logger, logging.DEBUG, Rate(1, 0), Rate(1, 0), clock=clock)
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
    again = f"{TEXT}: away (599 times more since it was last logged)"
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


# Pages are answered in threads, and a log that one of them writes to must not fail for another.
class Intruder:
    """Does something in another thread, amid what this one is doing, unless a lock keeps it out."""

    def __init__(self, act: Callable[[], None], lock: Lock) -> None:
        self._thread, self._lock = Thread(target=act), lock

    def __call__(self) -> None:
        if self._thread.ident is None:
            is_kept_out = self._lock.locked()
            self._thread.start()
            if not is_kept_out:
                self._thread.join(PATIENCE_S)

    def leave(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


class Caller(str):
    __slots__ = ("looked_up",)
    looked_up: Callable[[], None]

    def __hash__(self) -> int:
        if hasattr(self, "looked_up"):
            self.looked_up()
        return super().__hash__()


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    """The one lock of what the test makes."""
    lock = Lock()
    for module in ("core.logs", "core.fault_log"):
        monkeypatch.setattr(f"{module}.Lock", lambda: lock)
    return lock


def test_caller_who_is_forgotten_by_two_threads_at_once_fails_neither(
    caplog: pytest.LogCaptureFixture, lock: Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.logs.MOST_CALLERS", 1)
    log = SampledLog(logger, logging.INFO, Rate(1, 0), Rate(10, 0))
    oldest = Caller("oldest")
    log.tell("401", oldest, "first")
    oldest.looked_up = intruder = Intruder(lambda: log.tell("401", "third", "third"), lock)
    log.tell("401", "second", "second")
    intruder.leave()
    assert sorted(caplog.messages) == ["first", "second", "third"]


@pytest.mark.parametrize("nth", range(1, 5))
def test_kind_that_comes_while_the_rest_is_told_is_counted(
    caplog: pytest.LogCaptureFixture, lock: Lock, nth: int
) -> None:
    log = SampledLog(logger, logging.INFO, Rate(0, 0), Rate(0, 0))
    kind, times = Caller("404"), itertools.count(1)
    intruder = Intruder(log.tell_rest, lock)
    log.tell("401", "a", "left out")
    kind.looked_up = lambda: intruder() if next(times) == nth else None
    log.tell(kind, "a", "left out")
    intruder.leave()
    log.tell_rest()
    ending = "were not logged one by one"
    assert sorted(caplog.messages) == [f"1 more of 401 {ending}", f"1 more of 404 {ending}"]


def test_warning_that_two_threads_give_at_once_is_one_line(
    caplog: pytest.LogCaptureFixture, lock: Lock, clock: Clock
) -> None:
    warning = RepeatedWarning(logger, "%d came", clock=clock)
    intruder = Intruder(warning.tell, lock)

    def intrude(record: logging.LogRecord) -> bool:
        intruder()
        return True

    logger.addFilter(intrude)
    warning.tell()
    intruder.leave()
    clock.now_s += LOG_REPEATED_EVERY_S
    warning.tell()
    assert caplog.messages == ["1 came", "2 came"]


def test_line_that_cannot_be_read_fails_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    record = logging.LogRecord(
        f"{REFUSALS}csrf.other", logging.ERROR, __file__, 1, "%d", ("no number",), None
    )
    ReasonOfRefusal().handle(record)
