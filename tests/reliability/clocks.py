"""Clocks that a test sets, of processes that it starts."""

from __future__ import annotations

from pathlib import Path

from tests.debian import require_debian

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Clock:
    """Of one process: the wall's, which may be set; not the monotonic one."""

    def __init__(self, directory: Path) -> None:
        require_debian("faketime")
        (library, *_) = Path("/").glob(LIBRARY[1:])
        self._file = directory / "clock"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.step(0)

    def step(self, seconds: int) -> None:
        made = self._file.with_suffix(".new")
        made.write_text(f"{seconds:+d}s")
        made.replace(self._file)
