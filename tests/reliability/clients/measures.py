"""What a process takes, and how late things come."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOOK_EVERY_S = 0.05


def rss_kib(pid: int) -> int:
    """What of a process is in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def descriptors(pid: int) -> list[str]:
    """Where each file that it has open leads to."""
    found: list[str] = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return found


def sockets(pid: int) -> int:
    return sum(each.startswith("socket:") for each in descriptors(pid))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


class Memory:
    """Of a process: what it was, and the most that was seen."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.before = self.peak = rss_kib(pid)

    def look(self) -> None:
        self.peak = max(self.peak, rss_kib(self._pid))

    async def watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    @property
    def grown_mib(self) -> float:
        return (self.peak - self.before) / 1024
