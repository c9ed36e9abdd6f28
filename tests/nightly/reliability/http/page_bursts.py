"""Many at once who ask for pages, and what a server holds open for them."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S
from tests.programs.debian import require_debian
from tests.reliability.services.processes import Process


async def burst(server: Process, path: str, at_once: int, rounds: int) -> Counter[int]:
    """The statuses; 0 where the connection ended without an answer. All of a round go at once."""
    statuses: Counter[int] = Counter()
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=PATIENCE_S) as client:

        async def ask() -> None:
            try:
                statuses[(await client.get(path, headers={"Accept": "text/html"})).status_code] += 1
            except httpx.TransportError:
                statuses[0] += 1

        for _ in range(rounds):
            await asyncio.gather(*(ask() for _ in range(at_once)))
    return statuses


UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0}


class Asked:
    """What came of it, once it is over."""

    said = ""

    @property
    def answered(self) -> int:
        assert "Non-2xx" not in self.said, self.said
        return int(self._find(r"(\d+) requests in")[1])

    @property
    def median_ms(self) -> float:
        found = self._find(r"50%\s+([\d.]+)(us|ms|s)")
        return float(found[1]) * UNITS_MS[found[2]]

    def _find(self, pattern: str) -> re.Match[str]:
        found = re.search(pattern, self.said)
        assert found is not None, self.said
        return found


@contextmanager
def asking(url: str, at_once: int, seconds: float) -> Iterator[Asked]:
    """A client in C that begins with the context, and with whose end the context ends."""
    command = [require_debian("wrk"), "-t1", f"-c{at_once}", f"-d{seconds:.0f}s", "--latency", url]
    asked = Asked()
    with subprocess.Popen(
        [*command, "-H", "Accept: text/html"], stdout=subprocess.PIPE, text=True
    ) as process:
        yield asked
        asked.said = process.communicate()[0]


def open_files(pid: int, name: str) -> int:
    """Descriptors of a process that are open on files of this name: on SQLite, its connections."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += descriptor.readlink().name == name
        except FileNotFoundError:
            continue
    return found


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
