"""The age of the last backup and the room on the disks, for Prometheus; the doctor warns of an old backup."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread

from .doctor.diagnosis import Diagnosis, ok, warn
from .models import LastBackup

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 60.0
# A nightly backup may be late. The alert TickwireBackupOld waits as long.
OLD = timedelta(days=2)


class BackupWatch(Collector):
    def __init__(self) -> None:
        self.finished_at: datetime | None = None
        self._loop = BackgroundLoop(
            "last backup",
            self.look,
            fault=LastingFault(logger, "When the last backup was made cannot be read"),
            broke="When the last backup was made could not be read",
            passing=UNANSWERED,
            after=LOOK_EVERY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        self.finished_at = await in_thread(LastBackup.objects.finished_at)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "Since the last backup of the database was finished; absent before the first one."
        age = GaugeMetricFamily("tickwire_backup_age_seconds", text)
        # An operator may make backups in another way.
        if self.finished_at is not None:
            age.add_metric((), (timezone.now() - self.finished_at).total_seconds())
        yield age


backup_watch = BackupWatch()


def check_last_backup() -> Iterator[Diagnosis]:
    about, finished_at = "backup", LastBackup.objects.finished_at()
    if finished_at is None:
        yield ok(about, "The command `backup` has not been used yet, so no backup is missing.")
        return
    says = f"The last backup was finished at {finished_at:%-d %b %Y, %H:%M} UTC"
    if timezone.now() - finished_at <= OLD:
        yield ok(about, f"{says}.")
        return
    fix = (
        "Find out why no backups are made any more: `systemctl status tickwire-backup`, or the mails of cron."
    )
    yield warn(about, f"{says}, more than two days ago.", fix)


class DiskMetrics(Collector):
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        free = GaugeMetricFamily(
            "tickwire_disk_free_ratio", "The share of the disk that is free.", labels=("folder",)
        )
        disks: dict[int, tuple[str, float]] = {}
        # Two folders on one disk are named by the last.
        for folder in (settings.ARCHIVE_DIR, settings.VAR_DIR):
            with suppress(OSError):
                usage = shutil.disk_usage(folder)
                disks[os.stat(folder).st_dev] = str(folder), usage.free / usage.total
        for named, share in disks.values():
            free.add_metric((named,), share)
        yield free


disk_metrics = DiskMetrics()
