"""Keeps what the engine decides: a listener that only puts it aside, and has it on the disk before a
checkpoint says that it is written."""

import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime

from django.conf import settings
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core import clock
from core.fault_log import LastingFault
from market.engine import EngineStart, SeriesEnding
from market.prices import AnyRecord

from .folding.fold import nightly
from .journal import LACKS_PYARROW, TickJournalWriter, has_pyarrow, journal_folder

logger = logging.getLogger(__name__)


# A checkpoint waits no longer for a disk that hangs: signals and candles depend on it.
PATIENCE_S = 2.0
# Batches that no reader fetches, because another process writes the candles.
MOST_BATCHES = 20_000


class TickKeeper:
    def __init__(self) -> None:
        self.writer: TickJournalWriter | None = None
        """None while no engine runs here, or nothing is archived."""
        self._heard: list[tuple[str, list[AnyRecord]]] = []
        self._thread: ThreadPoolExecutor | None = None
        self._epoch: Callable[[], str] = str
        self._is_ending = False
        self._hanging: Future[None] | None = None
        """The last write, while its outcome is unknown."""
        self._hangs = LastingFault(logger, "The disk of the archive hangs, checkpoints go on", logging.ERROR)

    async def begin(self, start: EngineStart) -> None:
        self._close()
        if not settings.ARCHIVE:
            return
        if not has_pyarrow():
            # The demo's are never archived, so it matters there only once an instrument has a real source.
            level = logging.INFO if settings.DEMO else logging.WARNING
            logger.log(level, "Ticks are not archived: %s, or set ARCHIVE=0", LACKS_PYARROW)
            return
        self._epoch = start.epoch
        at_ms = clock.now_ms()
        self.writer = TickJournalWriter(journal_folder(), settings.CANDLE_PRICE, start.standings, at_ms)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")
        if start.tail:
            self.hear(start.tail)
        self._is_ending = False
        await nightly.start()

    async def stored(self, symbols: Collection[str]) -> None:
        """Minutes of a simulated market, which is not archived."""

    def hear(self, records: list[AnyRecord]) -> None:
        if self.writer is not None:
            self._heard.append((self._epoch(), records))
            if len(self._heard) > MOST_BATCHES:
                if self._hanging is not None:
                    self.writer.lost += sum(len(own) for _, own in self._heard[: MOST_BATCHES // 2])
                del self._heard[: MOST_BATCHES // 2]

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        if self.writer is None or self._thread is None:
            return _nothing
        hanging = self._hanging
        if hanging is not None and not hanging.done() and not self._is_ending:
            # Records wait in a bounded buffer, and not for the thread.
            return lambda: self._wait_for(hanging)
        heard, self._heard = self._heard, []
        writing = self._thread.submit(self.writer.write, heard)
        if self._is_ending:
            self._close()
        return lambda: self._wait_for(writing)

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        return _nothing

    async def end(self) -> None:
        """The last records are written with the last checkpoint, which follows this."""
        self._is_ending = True
        await nightly.stop()

    def _close(self) -> None:
        """After all that was asked of the thread."""
        if self.writer is not None and self._thread is not None:
            self._thread.submit(self.writer.close)
            self._thread.shutdown(wait=False)
        self.writer = self._thread = self._hanging = None
        self._heard.clear()

    def _wait_for(self, writing: Future[None]) -> None:
        try:
            writing.result(PATIENCE_S)
        except NotInTime:
            self._hanging = writing
            self._hangs.tell(NotInTime(f"nothing was written within {PATIENCE_S:g} s"))
        else:
            self._hanging = None
            self._hangs.over()

    @property
    def fault(self) -> str:
        """Why it stands still; empty while it does not."""
        if self.writer is None:
            return ""
        return self.writer.fault or ("the disk hangs" if self._hanging is not None else "")


def _nothing() -> None:
    """There is nothing to write."""


keeper = TickKeeper()


# In Prometheus' words, by the process in which the engine runs.
class ArchiveMetrics(Collector):
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        writer = keeper.writer
        if writer is None:
            # It is off, or the engine leads elsewhere.
            return
        keeps = "1 while accepted ticks are kept for the archive: 0 while its disk takes none."
        folds = "1 while the files of past days are made: 0 since the last try failed."
        yield GaugeMetricFamily("tickwire_archive_keeps", keeps, value=not keeper.fault)
        yield GaugeMetricFamily("tickwire_archive_folds", folds, value=not nightly.fault)
        written = "Records that are in the archive's journal."
        lost = "Records that its disk did not take in time: holes in the files."
        yield CounterMetricFamily("tickwire_archive_records", written, value=writer.written)
        yield CounterMetricFamily("tickwire_archive_lost", lost, value=writer.lost)


archive_metrics = ArchiveMetrics()
