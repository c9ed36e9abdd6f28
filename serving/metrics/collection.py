"""The supervisor's side: it asks all workers, keeps what ended ones counted, and answers for all."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.deadlines import patient

from .port import MetricsPort
from .worker_link import (
    ASK,
    BROKEN,
    FIGURES,
    TOTALS,
    WANT,
    Family,
    Sample,
    Snapshot,
    decoder,
    families,
    frame,
    read_frame,
    text_of,
)


# A worker as its supervisor hears of it: what it said last, and whether it says it now.
class LinkedWorker:
    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.writer = number, writer
        self.last: Snapshot | None = None
        """None until it has started: its link is there before its process."""
        self._asked: asyncio.Future[Snapshot | None] | None = None

    def ask(self) -> asyncio.Future[Snapshot | None]:
        """None if it ends instead. Whoever asks meanwhile shares the answer."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            with contextlib.suppress(OSError):
                self.writer.write(frame(ASK))
        return self._asked

    def hear(self, told: Snapshot) -> None:
        self.last = told
        self._answer(told)

    def end(self) -> None:
        self._answer(None)
        self.writer.close()

    def _answer(self, told: Snapshot | None) -> None:
        if self._asked is not None:
            self._asked.set_result(told)
            self._asked = None


class Answers(NamedTuple):
    told: dict[str, Snapshot]
    """By the number of the worker."""
    silent: list[str]
    """Those that have started and did not answer in time."""


async def ask_all(links: list[LinkedWorker], within_s: float | None) -> Answers:
    """One that has not started yet is not waited for."""
    asked = [(str(worker.number), worker.ask()) for worker in links if worker.last is not None]
    if asked:
        await asyncio.wait([answer for _, answer in asked], timeout=within_s)
    # A successor comes after the one that it replaces, and has the same number.
    told = {number: answer.result() for number, answer in asked if answer.done()}
    return Answers(
        {number: snapshot for number, snapshot in told.items() if snapshot is not None},
        [number for number, answer in asked if not answer.done()],
    )


# The figures of several workers as those of one service. What is counted is added up, with what workers
# counted that have ended, so that no restart makes a total go back. What is measured cannot be added up: it
# gets the label `worker`, with exceptions that are named here.
COUNTED = frozenset(("counter", "histogram", "summary"))
ADDED_GAUGES = frozenset(("tickwire_stream_connections",))
QUANTILE = "quantile"
Labels = tuple[tuple[str, str], ...]
SampleName = tuple[str, Labels]


class FamilyTotal:
    """One family of several processes."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[SampleName, float] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            name = sample.name, tuple(sorted(sample.labels.items()))
            before = self.values.get(name)
            if before is None:
                self.values[name] = sample.value
            elif QUANTILE in sample.labels:
                # The worst of them: quantiles of parts do not make one of the whole.
                self.values[name] = max(before, sample.value)
            else:
                self.values[name] = before + sample.value

    def label(self, samples: Iterable[Sample], worker: str) -> None:
        for sample in samples:
            labels = sample.labels | {"worker": worker}
            self.values[sample.name, tuple(sorted(labels.items()))] = sample.value

    def told(self) -> Family:
        samples = [Sample(name, dict(labels), value) for (name, labels), value in self.values.items()]
        return Family(self.family.name, self.family.text, self.family.kind, samples)


class EndedWorkers:
    """What workers counted that have ended."""

    def __init__(self) -> None:
        self.totals: dict[str, FamilyTotal] = {}

    def note(self, last: Snapshot) -> None:
        for family in last.own:
            if family.kind in COUNTED:
                total = self.totals.setdefault(family.name, FamilyTotal(family))
                total.add(sample for sample in family.samples if QUANTILE not in sample.labels)


def add_up(ended: EndedWorkers, known: Iterable[Snapshot], running: Mapping[str, Snapshot]) -> list[Family]:
    """`known`: the last of every process that has not ended. `running`: those that answered just now, by the
    number of the worker."""
    totals: dict[str, FamilyTotal] = {}
    for name, before in ended.totals.items():
        totals[name] = FamilyTotal(before.family)
        totals[name].values |= before.values
    for snapshot in known:
        for family in filter(is_added, snapshot.own):
            totals.setdefault(family.name, FamilyTotal(family)).add(family.samples)
    for worker, snapshot in running.items():
        for family in snapshot.own:
            if not is_added(family):
                totals.setdefault(family.name, FamilyTotal(family)).label(family.samples, worker)
    latest = max(running.values(), key=lambda snapshot: snapshot.shared_at, default=None)
    return [*(total.told() for total in totals.values()), *(latest.shared if latest else ())]


def is_added(family: Family) -> bool:
    return family.kind in COUNTED or family.name in ADDED_GAUGES


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
