"""What becomes of the workers when one of them cannot be started."""

from __future__ import annotations

import errno
import signal
import socket
from typing import Any

import pytest
import uvicorn

from serving.workers import supervisor
from serving.workers.places import Place
from serving.workers.slot import FIRST_DELAY_S
from serving.workers.supervisor import Supervisor
from serving.workers.worker import ALIVE, SERVING


class Started:
    """Serves at once, until it is killed."""

    def __init__(self, pid: int, place: Place) -> None:
        self.pid, self.place, self.process, self.is_alive = pid, place, self, lambda: True
        self._words = [SERVING]

    def says(self) -> list[bytes]:
        words, self._words = self._words, [ALIVE]
        return words

    def die(self) -> None:
        self.is_alive = lambda: False

    def reap(self) -> str:
        return "was killed by SIGKILL"

    def stop(self, *, is_gentle: bool) -> None:
        self.die()


class Machine:
    """It has no room for another process while `is_full`."""

    def __init__(self) -> None:
        self.is_full = False
        self.started = 0

    def start(self, config: Any, sockets: Any, place: Place, figures: Any, ends_within_s: float) -> Started:
        if self.is_full:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        self.started += 1
        return Started(self.started, place)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(supervisor, "Worker", made.start)
    return made


@pytest.fixture
def workers(machine: Machine) -> Supervisor:
    with socket.socket() as listener:
        made = Supervisor(uvicorn.Config("none", workers=2), listener, lambda: None, 1.0)
        look(made, 0.0, 0.0)
        return made


def look(workers: Supervisor, *moments: float) -> None:
    for moment in moments:
        workers.look(moment)


def running(workers: Supervisor) -> list[int]:
    return [worker.pid for worker in workers.running()]


def test_worker_that_cannot_be_started_is_tried_again_and_the_others_stay(
    machine: Machine, workers: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    machine.is_full = True
    next(iter(workers.running())).die()  # type: ignore[attr-defined]
    look(workers, 100.0, 100.2)
    assert running(workers) == [2]
    assert "Worker 1 could not be started: [Errno 11] Resource temporarily unavailable" in caplog.text

    machine.is_full = False
    look(workers, 100.3)
    assert running(workers) == [2]
    look(workers, 100.3 + FIRST_DELAY_S)
    assert running(workers) == [3, 2]


def test_workers_that_cannot_be_replaced_stay(machine: Machine, workers: Supervisor) -> None:
    machine.is_full = True
    workers.begin_to_renew()
    look(workers, 100.0, 101.0, 140.0)
    assert running(workers) == [1, 2]

    machine.is_full = False
    workers.begin_to_renew()
    look(workers, *(200.0 + step for step in range(10)))
    assert sorted(running(workers)) == [3, 4]


def test_renewing_again_while_the_last_ones_leave_keeps_as_many(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, workers: Supervisor
) -> None:
    left: list[Started] = []
    monkeypatch.setattr(Started, "stop", lambda self, *, is_gentle: left.append(self))
    workers.begin_to_renew()
    look(workers, *(100.0 + step for step in range(4)))
    assert [worker.pid for worker in left] == [1, 2]

    workers.begin_to_renew()
    look(workers, 105.0)
    for worker in left[:2]:
        worker.die()
    look(workers, *(106.0 + step for step in range(5)))
    for worker in left[2:]:
        worker.die()
    look(workers, 112.0)
    assert sorted(running(workers)) == [5, 6]


def test_hangup_renews_also_where_standard_input_is_closed(
    monkeypatch: pytest.MonkeyPatch, workers: Supervisor
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    workers.signals.append(signal.SIGHUP)

    workers.obey()

    look(workers, *(100.0 + step for step in range(5)))
    assert sorted(running(workers)) == [3, 4]
