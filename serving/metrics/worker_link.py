"""The worker's side: it sends its figures to the supervisor, as snapshots in frames, and asks it for those of
all workers."""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from asgiref.sync import sync_to_async
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.background import cancel_and_wait
from core.deadlines import patient

logger = logging.getLogger(__name__)

# Figures from the engine or the database: the same in all processes, so they are not added up.
SHARED = CollectorRegistry()


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True):
    name: str
    text: str
    kind: str
    samples: list[Sample]


class Snapshot(msgspec.Struct, frozen=True):
    """What one process has counted and measured at one moment."""

    own: list[Family]
    shared: list[Family] = []
    shared_at: float = 0.0
    """When this process received the shared figures: the latest ones count."""
    readiness: tuple[int, dict[str, Any]] = (200, {})
    """What its `/readyz` answers."""


AsksReadiness = Callable[[], tuple[int, dict[str, Any]]]


class ProcessMetrics:
    def __init__(self) -> None:
        self._told_at: Callable[[], float] = lambda: 0.0

    def share(self, engine: Collector, told_at: Callable[[], float]) -> None:
        """The engine's figures, and when they were last received."""
        SHARED.register(engine)
        self._told_at = told_at

    def text(self) -> bytes:
        return generate_latest(REGISTRY) + generate_latest(SHARED)

    def snapshot(self, readiness: AsksReadiness) -> Snapshot:
        """Called in a thread, like everything that looks at the market."""
        own, shared = families(REGISTRY), families(SHARED)
        return Snapshot(own, shared, self._told_at(), readiness())

    def last_words(self) -> Snapshot:
        """The counts at the end, when the market has been stopped."""
        return Snapshot(families(REGISTRY))


def families(registry: Collector) -> list[Family]:
    return [
        Family(metric.name, metric.documentation, metric.type, _samples(metric))
        for metric in registry.collect()
    ]


def _samples(metric: Metric) -> list[Sample]:
    # The times at which counters were made do not add up.
    made = f"{metric.name}_created"
    return [Sample(each.name, each.labels, float(each.value)) for each in metric.samples if each.name != made]


class Exposition(Collector):
    """Families as the client library writes them."""

    def __init__(self, given: Iterable[Family]) -> None:
        self._given = given

    def collect(self) -> Iterator[Metric]:
        for family in self._given:
            metric = Metric(family.name, family.text, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


def text_of(given: Iterable[Family]) -> bytes:
    return generate_latest(Exposition(given))


process_metrics = ProcessMetrics()


# The frames between a worker and its supervisor, over a pair of sockets of their own.
ASK, FIGURES, WANT, TOTALS = b"A", b"F", b"W", b"T"
LENGTH = struct.Struct("!cI")

# JSON has no infinity, which is what some limits are.
encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Snapshot)


async def read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, size = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return kind, await reader.readexactly(size)


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return LENGTH.pack(kind, len(payload)) + payload


# Longer than the supervisor waits for a worker that does not answer.
TOTALS_WITHIN_S = patient(6.0)
LAST_WORDS_WITHIN_S = patient(1.0)
BROKEN = (OSError, asyncio.IncompleteReadError)


class SupervisorSilent(Exception):
    """There is a supervisor, but it does not send the figures of all workers."""


class WorkerLink:
    def __init__(self) -> None:
        self.end: socket.socket | None = None
        """Set where the process has a supervisor, before it serves."""
        self._readiness: AsksReadiness = lambda: (200, {})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._wanted: asyncio.Future[bytes] | None = None

    @property
    def is_there(self) -> bool:
        return self.end is not None

    async def start(self, readiness: AsksReadiness) -> None:
        if self.end is not None:
            self._readiness = readiness
            self._loop = asyncio.get_running_loop()
            reader, self._writer = await asyncio.open_unix_connection(sock=self.end)
            # From this first frame on, the supervisor waits for this worker.
            await self._send(self._writer)
            self._hearing = asyncio.create_task(self._hear(reader, self._writer), name="figures")

    async def stop(self) -> None:
        """After everything else has stopped, so that no count is missing."""
        await cancel_and_wait(self._hearing)
        if self._writer is None:
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_WITHIN_S):
                self._writer.write(frame(FIGURES, encoder.encode(process_metrics.last_words())))
                await self._writer.drain()
        self._writer.close()
        self._writer = self._loop = None

    def totals_from_thread(self) -> bytes:
        """The text of /metrics of all workers."""
        if self._loop is None:
            raise SupervisorSilent
        # A page may be made on a loop of its own, but the connection belongs to this one.
        return asyncio.run_coroutine_threadsafe(self._totals(), self._loop).result()

    async def _totals(self) -> bytes:
        if self._writer is None:
            raise SupervisorSilent
        if self._wanted is None or self._wanted.done():
            self._wanted = asyncio.get_running_loop().create_future()
            self._writer.write(frame(WANT))
        try:
            async with asyncio.timeout(TOTALS_WITHIN_S):
                return await asyncio.shield(self._wanted)
        except TimeoutError:
            self._wanted = None
            raise SupervisorSilent from None

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*BROKEN):
            while True:
                kind, payload = await read_frame(reader)
                if kind == ASK:
                    await self._send(writer)
                    await writer.drain()
                elif kind == TOTALS and self._wanted is not None and not self._wanted.done():
                    self._wanted.set_result(payload)
        # The supervisor has ended, or did not understand a frame.
        writer.close()
        self._writer = None

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        try:
            snapshot = await sync_to_async(process_metrics.snapshot, thread_sensitive=False)(self._readiness)
            # Encoded in a thread too: a long answer holds up no tick.
            payload = await asyncio.to_thread(encoder.encode, snapshot)
        except Exception:
            logger.exception("The figures of this worker could not be collected")
            return
        writer.write(frame(FIGURES, payload))


worker_link = WorkerLink()
