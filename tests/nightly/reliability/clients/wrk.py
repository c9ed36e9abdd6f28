"""A client in C that asks as fast as it is answered, on so many connections."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.programs.debian import require_debian

UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0}


class Asked:
    """What came of it, once it is over."""

    said = ""

    @property
    def refused(self) -> int:
        found = re.search(r"Non-2xx or 3xx responses: (\d+)", self.said)
        return int(found[1]) if found else 0

    @property
    def answered(self) -> int:
        """With 200."""
        return int(self._find(r"(\d+) requests in")[1]) - self.refused

    @property
    def median_ms(self) -> float:
        found = self._find(r"50%\s+([\d.]+)(us|ms|s)")
        return float(found[1]) * UNITS_MS[found[2]]

    def _find(self, pattern: str) -> re.Match[str]:
        found = re.search(pattern, self.said)
        assert found is not None, self.said
        return found


@contextmanager
def asking(url: str, at_once: int, seconds: float, header: str) -> Iterator[Asked]:
    """It begins with the context, and with its end the context ends."""
    command = [require_debian("wrk"), "-t1", f"-c{at_once}", f"-d{seconds:.0f}s", "--latency", "-H", header]
    asked = Asked()
    with subprocess.Popen([*command, url], stdout=subprocess.PIPE, text=True) as process:
        yield asked
        asked.said = process.communicate()[0]
