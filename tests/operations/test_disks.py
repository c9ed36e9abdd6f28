"""The room that is left on each disk, as Prometheus reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from operations.metrics import disk_metrics
from serving.metrics.worker_link import families

# Linux has a disk of its own there.
ELSEWHERE = Path("/dev/shm")  # noqa: S108 - read only


def test_each_disk_is_told_once(settings: Settings, tmp_path: Path) -> None:
    def told() -> dict[str, float]:
        (family,) = families(disk_metrics)
        return {sample.labels["folder"]: sample.value for sample in family.samples}

    settings.VAR_DIR, settings.ARCHIVE_DIR = tmp_path, tmp_path / "archive"
    assert set(told()) == {str(tmp_path)}
    settings.ARCHIVE_DIR.mkdir()
    assert set(told()) == {str(tmp_path)}
    settings.ARCHIVE_DIR = ELSEWHERE
    assert set(told()) == {str(tmp_path), str(ELSEWHERE)}
    room = os.statvfs(tmp_path)
    assert told()[str(tmp_path)] == pytest.approx(room.f_bavail / room.f_blocks, abs=0.05)
