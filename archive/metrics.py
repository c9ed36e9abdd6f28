"""The archive in Prometheus' words, by the process in which the engine runs."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .folding.fold import nightly
from .keeper import keeper


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
