"""Who accepts the next connection, when a worker is started again, when it is given up, and what becomes of
the others when one cannot be started."""

from __future__ import annotations

import errno
import signal
import socket
from typing import Any

import pytest
import uvicorn

from serving.workers import supervisor
from serving.workers.places import AHEAD, PRESENT_S, Place, Places
from serving.workers.slot import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    SILENT_AFTER_S,
    SLOW_START_S,
    SOUND_AFTER_S,
    WorkerSlot,
)
from serving.workers.supervisor import Supervisor
from serving.workers.worker import ALIVE, SERVING

NOW = 1_000.0


def shown(places: Places, *counts: int) -> list[Place]:
    taken = [places.take() for _ in counts]
    for place, opened in zip(taken, counts, strict=True):
        place.show(opened, NOW)
    return taken


@pytest.mark.parametrize(
    ("counts", "ahead"),
    [
        ((0, 0), [False, False]),
        ((AHEAD, 0), [False, False]),
        ((AHEAD + 1, 0), [True, False]),
        ((1_000 + 50 + AHEAD, 1_000), [False, False]),
        ((1_000 + 50 + AHEAD + 1, 1_000), [True, False]),
    ],
)
def test_who_has_clearly_more_than_the_fewest_leaves_it_to_others(
    counts: tuple[int, ...], ahead: list[bool]
) -> None:
    assert [place.is_ahead(NOW) for place in shown(Places(2), *counts)] == ahead


def test_nobody_waits_for_a_worker_that_is_silent_or_has_left_or_not_begun() -> None:
    crowded, silent = shown(Places(2), 100, 0)
    silent.show(0, NOW - 2 * PRESENT_S)
    assert not crowded.is_ahead(NOW)
    crowded, gone = shown(Places(2), 100, 0)
    gone.leave()
    assert not crowded.is_ahead(NOW)
    places = Places(2)
    (crowded,) = shown(places, 100)
    places.take()
    assert not crowded.is_ahead(NOW)


def test_place_of_a_worker_that_died_is_empty_and_given_again() -> None:
    places = Places(1)
    crowded, empty = shown(places, 100, 0)
    places.give_back(empty)
    assert not crowded.is_ahead(NOW)
    assert places.take().index == empty.index
    assert not crowded.is_ahead(NOW)
    # One more than there are, for a worker that leaves.
    places.take()
    with pytest.raises(OSError, match="have not ended yet"):
        places.take()


def make_slot(*, serving: bool = False) -> WorkerSlot:
    slot = WorkerSlot(1, 0.0)
    assert slot.is_due(0.0)
    slot.started(0.0)
    if serving:
        slot.serves(0.0)
    return slot


def test_each_failure_in_a_row_waits_twice_as_long_and_never_for_ever() -> None:
    slot, delays = make_slot(), []
    for _ in range(10):
        delays.append(slot.ended(0.0))
        assert (slot.is_due(0.0), slot.is_due(delays[-1])) == (False, True)
        slot.started(0.0)
    assert delays[:4] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S, 8 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S
    # One that proved sound is followed at once.
    slot.serves(2.0)
    assert (slot.ended(2.0 + SOUND_AFTER_S), slot.failures) == (0.0, 0)


def test_silent_worker_has_to_be_killed() -> None:
    slot = make_slot(serving=True)
    slot.heard(20.0)
    assert not slot.has_to_be_killed(20.0 + SILENT_AFTER_S)
    assert slot.has_to_be_killed(20.1 + SILENT_AFTER_S)


def test_worker_that_starts_may_take_its_time() -> None:
    slot = make_slot()
    assert not slot.has_to_be_killed(10_000.0)
    told = [now for now in range(0, 200, 10) if slot.is_slow_to_start(float(now))]
    assert told == [SLOW_START_S, 2 * SLOW_START_S, 3 * SLOW_START_S]


def test_worker_that_was_told_to_end_has_to_and_is_followed_at_once() -> None:
    slot = make_slot(serving=True)
    slot.stops(5.0, 20.0)
    # Said twice, by the worker itself and by who told it: that gives it no more time.
    slot.stops(15.0, 20.0)
    assert (slot.has_to_be_killed(24.0), slot.has_to_be_killed(25.0)) == (False, True)
    assert slot.ended(6.0) == 0.0
    leaving = make_slot(serving=True)
    leaving.leaves(5.0, 20.0)
    assert (leaving.state, leaving.has_to_be_killed(25.0)) == ("leaving", True)


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
        made = Supervisor(
            uvicorn.Config("none", workers=2, log_config=None, access_log=False), listener, lambda: None, 1.0
        )
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
