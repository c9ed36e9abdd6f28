"""The supervisor's side: it asks all workers, keeps what ended ones counted, and answers for all."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.deadlines import patient

from .frames import FIGURES, TOTALS, WANT, decoder, frame, read_frame
from .linked_worker import LinkedWorker, ask_all
from .port import MetricsPort
from .snapshots import families, text_of
from .totals import EndedWorkers, add_up
from .worker_link import BROKEN

logger = logging.getLogger(__name__)

# A worker that stands still must not keep the others from being seen. Kubernetes gives up a probe after a
# second unless it is told otherwise.
FIGURES_WITHIN_S, READINESS_WITHIN_S = patient(3.0), patient(0.8)
SILENT = {"status": "silent"}
BROKE = "The figures of the workers could not be collected"


class SupervisorMetrics(Collector):
    """What only the supervisor knows."""

    def __init__(self) -> None:
        self.states: Callable[[], list[str]] = list
        self.silent: list[str] = []
        self.registry = CollectorRegistry()
        self.ends = Counter(
            "tickwire_worker_ends",
            "Workers that ended without being told to.",
            ["why"],
            registry=self.registry,
        )
        self.registry.register(self)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "Workers by what they are doing: serving, starting, empty (none is there), stopping, leaving."
        workers = GaugeMetricFamily("tickwire_workers", text, labels=("state",))
        states = self.states()
        for state in ("serving", "starting", "empty", "stopping", "leaving"):
            workers.add_metric((state,), states.count(state))
        yield workers
        silent = "Workers that serve and did not say in time what they count: their last figures are used."
        yield GaugeMetricFamily("tickwire_workers_silent", silent, value=len(self.silent))


class FigureCollection:
    """Runs in a thread with a loop of its own, because the supervisor's own loop waits for processes."""

    def __init__(self) -> None:
        self._links: list[LinkedWorker] = []
        self._ended = EndedWorkers()
        self._tasks: set[asyncio.Task[None]] = set()
        self.supervisor = SupervisorMetrics()
        self.port = MetricsPort(self.text, self.readiness)

    def start(self, states: Callable[[], list[str]]) -> None:
        self.supervisor.states = states
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="figures", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_until_complete(self.port.start(settings.METRICS_PORT, settings.METRICS_HOST))
        self._loop.run_forever()

    def join(self, number: int) -> socket.socket:
        """The end of a new pair that the worker gets. The other one tells when the worker has ended."""
        ours, theirs = socket.socketpair()
        self._loop.call_soon_threadsafe(self._begin, number, ours)
        return theirs

    def _begin(self, number: int, end: socket.socket) -> None:
        task = self._loop.create_task(self._hold(number, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hold(self, number: int, end: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=end)
        worker = LinkedWorker(number, writer)
        self._links.append(worker)
        try:
            while True:
                kind, payload = await read_frame(reader)
                if kind == FIGURES:
                    worker.hear(decoder.decode(payload))
                elif kind == WANT:
                    self._answer(worker)
        except BROKEN:
            self._note_end(worker)
        except Exception:
            logger.exception(BROKE)
            self._note_end(worker)

    def _note_end(self, worker: LinkedWorker) -> None:
        self._links.remove(worker)
        worker.end()
        if worker.last is not None:
            self._ended.note(worker.last)

    def _answer(self, worker: LinkedWorker) -> None:
        async def answer() -> None:
            with contextlib.suppress(OSError):
                worker.writer.write(frame(TOTALS, await self.text()))

        task = self._loop.create_task(answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def text(self) -> bytes:
        answers = await ask_all(self._links, FIGURES_WITHIN_S)
        self.supervisor.silent = answers.silent
        known = [worker.last for worker in self._links if worker.last is not None]
        added = add_up(self._ended, known, answers.told)
        return text_of([*added, *families(self.supervisor.registry)])

    async def readiness(self) -> tuple[int, dict[str, Any]]:
        """Whoever connects gets any worker: so all that serve have to be ready, one that hangs among them."""
        answers = await ask_all(self._links, READINESS_WITHIN_S)
        workers = {number: snapshot.readiness for number, snapshot in answers.told.items()}
        silent = [number for number in answers.silent if number not in workers]
        ready = bool(workers) and not silent and all(status == 200 for status, _ in workers.values())
        told = {number: body for number, (_, body) in workers.items()} | dict.fromkeys(silent, SILENT)
        return (200 if ready else 503), {"status": "ready" if ready else "not ready", "workers": told}
