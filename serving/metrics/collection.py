"""The supervisor's side: it asks all workers, keeps the counts of ended ones, and answers for all."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from itertools import filterfalse
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


class LinkedWorker:
    """A worker as its supervisor knows it."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.writer = number, writer
        self.last: Snapshot | None = None
        """None until it has started: the link exists before the process."""
        self._asked: asyncio.Future[Snapshot | None] | None = None

    def ask(self) -> asyncio.Future[Snapshot | None]:
        """None if it ends instead. All who ask before it answers share the answer."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            with contextlib.suppress(OSError):
                self.writer.write(frame(ASK))
        return self._asked

    def hear(self, snapshot: Snapshot) -> None:
        self.last = snapshot
        self._answer(snapshot)

    def end(self) -> None:
        self._answer(None)
        self.writer.close()

    def _answer(self, snapshot: Snapshot | None) -> None:
        if self._asked is not None:
            self._asked.set_result(snapshot)
            self._asked = None


class Answers(NamedTuple):
    given: dict[str, Snapshot]
    """By the number of the worker."""
    silent: list[str]
    """Workers that have started and did not answer in time."""


async def ask_all(links: list[LinkedWorker], within_s: float | None) -> Answers:
    """Without waiting for one that has not started yet."""
    asked = [(str(worker.number), worker.ask()) for worker in links if worker.last is not None]
    if asked:
        await asyncio.wait([answer for _, answer in asked], timeout=within_s)
    # A successor comes after the one that it replaces, and has the same number.
    done = {number: answer.result() for number, answer in asked if answer.done()}
    return Answers(
        {number: snapshot for number, snapshot in done.items() if snapshot is not None},
        [number for number, answer in asked if not answer.done()],
    )


# The figures of several workers as those of one service. Counts are added up, with those of workers that have
# ended, so that no restart makes a total decrease. Gauges cannot be added up: they get the label `worker`,
# except for those named here.
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

    def add(self, samples: Iterable[Sample], **more: str) -> None:
        for sample in samples:
            name = sample.name, tuple(sorted((sample.labels | more).items()))
            before = self.values.get(name)
            if before is None:
                self.values[name] = sample.value
            elif QUANTILE in sample.labels:
                # The worst of them: quantiles of parts do not make one of the whole.
                self.values[name] = max(before, sample.value)
            else:
                self.values[name] = before + sample.value

    def as_family(self) -> Family:
        samples = [Sample(name, dict(labels), value) for (name, labels), value in self.values.items()]
        return Family(self.family.name, self.family.text, self.family.kind, samples)


class EndedWorkers:
    """What workers counted that have ended."""

    def __init__(self) -> None:
        self._totals: dict[str, FamilyTotal] = {}

    def note(self, last: Snapshot) -> None:
        for family in last.own:
            if family.kind in COUNTED:
                total = self._totals.setdefault(family.name, FamilyTotal(family))
                total.add(sample for sample in family.samples if QUANTILE not in sample.labels)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot([total.as_family() for total in self._totals.values()])


def add_up(ended: EndedWorkers, known: Iterable[Snapshot], running: Mapping[str, Snapshot]) -> list[Family]:
    """`known`: the last of every process that has not ended. `running`: those that answered just now, by the
    number of the worker."""
    totals: dict[str, FamilyTotal] = {}
    for snapshot in (ended.snapshot, *known):
        for family in filter(is_added, snapshot.own):
            totals.setdefault(family.name, FamilyTotal(family)).add(family.samples)
    for worker, snapshot in running.items():
        for family in filterfalse(is_added, snapshot.own):
            totals.setdefault(family.name, FamilyTotal(family)).add(family.samples, worker=worker)
    latest = max(running.values(), key=lambda snapshot: snapshot.shared_at, default=None)
    return [*(total.as_family() for total in totals.values()), *(latest.shared if latest else ())]


def is_added(family: Family) -> bool:
    return family.kind in COUNTED or family.name in ADDED_GAUGES


logger = logging.getLogger(__name__)

# A frozen worker must not hide the others. By default, Kubernetes gives up a probe after a second.
FIGURES_WITHIN_S, READINESS_WITHIN_S = patient(3.0), patient(0.8)
SILENT = {"status": "silent"}


class SupervisorMetrics(Collector):
    """What only the supervisor knows."""

    def __init__(self) -> None:
        self.states: Callable[[], list[str]] = list
        self.silent: list[str] = []
        self.registry = CollectorRegistry()
        self.ends = Counter(
            "tickwire_worker_ends",
            "Workers that ended without a request to stop.",
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
        """The worker's end of a new pair of sockets. The other end breaks when the worker has ended."""
        ours, theirs = socket.socketpair()
        self._loop.call_soon_threadsafe(lambda: self._begin(self._hold(number, ours)))
        return theirs

    def _begin(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        # The loop itself keeps no strong reference to it.
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
                    self._begin(self._send_totals(writer))
        except BROKEN:
            pass
        except Exception:
            logger.exception("The figures of the workers could not be collected")
        finally:
            self._links.remove(worker)
            worker.end()
            if worker.last is not None:
                self._ended.note(worker.last)

    async def _send_totals(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(frame(TOTALS, await self.text()))

    async def text(self) -> bytes:
        answers = await ask_all(self._links, FIGURES_WITHIN_S)
        self.supervisor.silent = answers.silent
        known = [worker.last for worker in self._links if worker.last is not None]
        added = add_up(self._ended, known, answers.given)
        return text_of([*added, *families(self.supervisor.registry)])

    async def readiness(self) -> tuple[int, dict[str, Any]]:
        """A client may get any worker, so all that serve have to be ready, even one that hangs."""
        answers = await ask_all(self._links, READINESS_WITHIN_S)
        workers = {number: snapshot.readiness for number, snapshot in answers.given.items()}
        silent = [number for number in answers.silent if number not in workers]
        ready = bool(workers) and not silent and all(status == 200 for status, _ in workers.values())
        bodies = {number: body for number, (_, body) in workers.items()} | dict.fromkeys(silent, SILENT)
        return (200 if ready else 503), {"status": "ready" if ready else "not ready", "workers": bodies}
