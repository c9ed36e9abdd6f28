"""Keeps a number of workers running on one listening socket, whatever ends them."""

import logging
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import uvicorn

from core.steady_clock import OwnTime
from serving.metrics.collection import FigureCollection

from .places import Place, Places
from .slot import LONGEST_STEP_S, WorkerSlot
from .worker import RETIRE, SERVING, STOPPING, ctrl_c_held_back, work

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 0.2

# Added to what a worker allows itself for its last answers and for closing its streams.
SPARE_S = 10.0


class Worker:
    """A process that serves, as seen from outside."""

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        place: Place,
        figures: socket.socket | None,
        ends_within_s: float,
    ) -> None:
        # A context of its own for each: what is inherited is the listening socket, the memory in which
        # workers count their connections, and the ends of two pipes.
        spawn = multiprocessing.get_context("spawn")
        self.place = place
        self.pipe, theirs = spawn.Pipe()
        given = config, sockets, place, theirs, figures, ends_within_s
        self.process: SpawnProcess = spawn.Process(target=work, args=given)
        try:
            with ctrl_c_held_back():
                self.process.start()
        finally:
            theirs.close()
            if figures is not None:
                figures.close()

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    def says(self) -> list[bytes]:
        """The worker's messages since the last call."""
        words = []
        with suppress(OSError, EOFError):
            while self.pipe.poll():
                words.append(self.pipe.recv_bytes())
        return words

    @property
    def waits_for(self) -> tuple[Connection, int]:
        """What the supervisor waits for: a message of the worker, or its end."""
        return self.pipe, self.process.sentinel

    def stop(self, *, is_gentle: bool) -> None:
        """Gently, a worker gives a proxy time to notice. Otherwise others already serve at its address."""
        try:
            if is_gentle:
                self.process.terminate()
            else:
                self.pipe.send_bytes(RETIRE)
        except OSError:
            self.process.terminate()

    def reap(self) -> str:
        """Returns why it ended."""
        self.process.join()
        code = self.process.exitcode or 0
        self.pipe.close()
        self.process.close()
        return cause(code)


NOT_STARTED = "could not start"


def cause(code: int) -> str:
    if code >= 0:
        return NOT_STARTED if code == uvicorn.config.STARTUP_FAILURE else f"ended with status {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (", by hand or for lack of memory" if name == "SIGKILL" else "")


def kind_of(why: str) -> str:
    """The few kinds of ends that are counted."""
    return "could_not_start" if why == NOT_STARTED else "killed" if "killed" in why else "ended"


class Supervisor:
    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket,
        on_serving: Callable[[], None],
        stops_within_s: float,
        figures: FigureCollection | None = None,
    ) -> None:
        self._config, self._listener = config, listener
        self._on_first_serving: Callable[[], None] | None = on_serving
        self._stops_within_s = stops_within_s + SPARE_S
        self._places = Places(config.workers)
        self._time = OwnTime(time.monotonic(), LONGEST_STEP_S)
        self._workers: dict[WorkerSlot, Worker | None] = {
            WorkerSlot(number, 0.0): None for number in range(1, config.workers + 1)
        }
        self.signals: list[int] = []
        self._figures = figures
        self._is_stopping = False
        self._to_renew: list[WorkerSlot] = []
        self._successor: WorkerSlot | None = None

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, frame: self.signals.append(number))
        if self._figures is not None:
            self._figures.start(lambda: [slot.state for slot in list(self._workers)])
        try:
            while self._workers:
                self.obey()
                self.look(self._time.pass_to(time.monotonic()))
                wait([part for worker in self.running() for part in worker.waits_for], LOOK_EVERY_S)
        finally:
            for worker in self.running():
                worker.process.kill()

    def running(self) -> list[Worker]:
        return [worker for worker in self._workers.values() if worker is not None]

    def obey(self) -> None:
        while self.signals:
            number = self.signals.pop(0)
            # SIGHUP asks for new code to be loaded, but a terminal that is closed sends it too.
            if number == signal.SIGHUP and not has_terminal():
                self.begin_to_renew()
            else:
                self._stop(number)

    def _stop(self, number: int) -> None:
        is_second, self._is_stopping = self._is_stopping, True
        self._to_renew.clear()
        for slot, worker in list(self._workers.items()):
            if worker is None:
                del self._workers[slot]
            elif is_second:
                worker.process.kill()
            else:
                # The terminal has sent Ctrl-C to the workers too, and a second one would end them at once.
                slot.stops(self._time.now, self._stops_within_s)
                worker.stop(is_gentle=number == signal.SIGTERM)

    def look(self, now: float) -> None:
        for slot, worker in list(self._workers.items()):
            if worker is not None:
                self._hear(slot, worker, now)
            elif slot.is_due(now) and not self._is_stopping:
                self._fill(slot, now)
        self._renew(now)

    def _fill(self, slot: WorkerSlot, now: float) -> bool:
        try:
            self._workers[slot] = self._start(slot.number)
        except OSError as error:
            # There are too many processes or open files, or no memory: the other workers go on.
            text = "Worker %s could not be started: %s; another try in %.0f s"
            logger.error(text, slot.number, error, slot.ended(now), extra={"worker": slot.number})  # noqa: TRY400 - a sentence says it all
            return False
        slot.started(now)
        return True

    def _start(self, number: int) -> Worker:
        place = self._places.take()
        try:
            link = self._figures.join(number) if self._figures is not None else None
            return Worker(self._config, [self._listener], place, link, self._stops_within_s)
        except OSError:
            self._places.give_back(place)
            raise

    def _hear(self, slot: WorkerSlot, worker: Worker, now: float) -> None:
        for word in worker.says():
            if word == SERVING and slot.state == "starting":
                self._note_serving(slot, worker, now)
            elif word == STOPPING:
                slot.stops(now, self._stops_within_s)
            else:
                slot.heard(now)
        if not worker.process.is_alive():
            self._note_end(slot, worker, now)
        elif slot.has_to_be_killed(now):
            logger.error("Worker %s (pid %s) hangs, so it is killed", slot.number, worker.pid)
            worker.process.kill()
        elif slot.is_slow_to_start(now):
            logger.warning("Worker %s (pid %s) has not started yet", slot.number, worker.pid)

    def _note_serving(self, slot: WorkerSlot, worker: Worker, now: float) -> None:
        slot.serves(now)
        fields = {"worker": slot.number, "pid": worker.pid}
        logger.info("Worker %s (pid %s) serves", slot.number, worker.pid, extra=fields)
        if self._on_first_serving is not None:
            self._on_first_serving()
            self._on_first_serving = None

    def _note_end(self, slot: WorkerSlot, worker: Worker, now: float) -> None:
        was, age_s, pid = slot.state, slot.age_s(now), worker.pid
        delay_s, why = slot.ended(now), worker.reap()
        self._places.give_back(worker.place)
        self._workers[slot] = None
        if self._is_stopping or was == "leaving":
            self._forget(slot)
        elif slot is self._successor:
            logger.error("A new worker (pid %s) %s, so the old ones stay", pid, why)
            self._successor = None
            self._to_renew.clear()
            del self._workers[slot]
        else:
            text = "%s (pid %s) %s after %.0f s of %s; another starts in %.0f s"
            fields = {"worker": slot.number, "pid": pid, "why": kind_of(why), "age_s": round(age_s)}
            logger.error("Worker " + text, slot.number, pid, why, age_s, was, delay_s, extra=fields)
            if self._figures is not None:
                self._figures.supervisor.ends.labels(kind_of(why)).inc()

    def begin_to_renew(self) -> None:
        if not self._to_renew and not self._is_stopping:
            logger.info("The workers are replaced, one after the other")
            self._to_renew = [slot for slot in self._workers if slot.state != "leaving"]

    def _renew(self, now: float) -> None:
        """The old worker stops only when its successor serves."""
        if not self._to_renew:
            return
        old = self._to_renew[0]
        if self._successor is None:
            successor = WorkerSlot(old.number, now)
            if self._fill(successor, now):
                self._successor = successor
            else:
                logger.error("The workers are not replaced: the old ones stay")
                self._to_renew.clear()
        elif self._successor.state == "serving":
            self._to_renew.pop(0)
            self._successor = None
            self._dismiss(old, now)

    def _dismiss(self, old: WorkerSlot, now: float) -> None:
        worker = self._workers[old]
        if worker is None:
            self._forget(old)
        else:
            old.leaves(now, self._stops_within_s)
            worker.stop(is_gentle=False)

    def _forget(self, slot: WorkerSlot) -> None:
        del self._workers[slot]
        if slot in self._to_renew:
            self._to_renew.remove(slot)


def has_terminal() -> bool:
    """A service may be started with its standard input closed."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
