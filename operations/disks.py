"""How much room the disks of this installation have, for Prometheus."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class DiskMetrics(Collector):
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        free = GaugeMetricFamily(
            "tickwire_disk_free_ratio", "The share of the disk that is free.", labels=("folder",)
        )
        disks: dict[int, tuple[str, float]] = {}
        # Of two folders on one disk the last stands for it.
        for folder in (settings.ARCHIVE_DIR, settings.VAR_DIR):
            with suppress(OSError):
                usage = shutil.disk_usage(folder)
                disks[os.stat(folder).st_dev] = str(folder), usage.free / usage.total
        for named, share in disks.values():
            free.add_metric((named,), share)
        yield free


disk_metrics = DiskMetrics()
