"""Pages are answered in threads, and a log that one of them writes to must not fail for another."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from threading import Lock, Thread

import pytest

from core.fault_log import LOG_REPEATED_EVERY_S, RepeatedWarning
from core.logs.refused_pages import REFUSALS, ReasonOfRefusal
from core.logs.sampled import Rate, SampledLog
from tests.patience import PATIENCE_S

from .test_sampled import Clock

logger = logging.getLogger("tests.threads")


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
    for module in ("core.logs.sampled", "core.fault_log"):
        monkeypatch.setattr(f"{module}.Lock", lambda: lock)
    return lock


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger.name):
        yield caplog
    logger.filters.clear()


def test_caller_who_is_forgotten_by_two_threads_at_once_fails_neither(
    heard: pytest.LogCaptureFixture, lock: Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.logs.sampled.MOST_CALLERS", 1)
    log = SampledLog(logger, logging.INFO, Rate(1, 0), Rate(10, 0))
    oldest = Caller("oldest")
    log.tell("401", oldest, "first")
    oldest.looked_up = intruder = Intruder(lambda: log.tell("401", "third", "third"), lock)
    log.tell("401", "second", "second")
    intruder.leave()
    assert sorted(heard.messages) == ["first", "second", "third"]


@pytest.mark.parametrize("nth", range(1, 5))
def test_kind_that_comes_while_the_rest_is_told_is_counted(
    heard: pytest.LogCaptureFixture, lock: Lock, nth: int
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
    assert sorted(heard.messages) == [f"1 more of 401 {ending}", f"1 more of 404 {ending}"]


def test_warning_that_two_threads_give_at_once_is_one_line(
    heard: pytest.LogCaptureFixture, lock: Lock
) -> None:
    clock = Clock()
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
    assert heard.messages == ["1 came", "2 came"]


def test_line_that_cannot_be_read_fails_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    record = logging.LogRecord(
        f"{REFUSALS}csrf.other", logging.ERROR, __file__, 1, "%d", ("no number",), None
    )
    ReasonOfRefusal().handle(record)
