"""`strace` on processes that run: what the kernel answers them is not what it did."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs.debian import require_debian

INJECTED = re.compile(r"\(INJECTED\)")


class Tracer:
    def __init__(self, log: Path) -> None:
        self._log = log

    @property
    def injected(self) -> int:
        return len(INJECTED.findall(self._log.read_text(errors="replace")))


@contextmanager
def injecting(log: Path, pids: Iterable[int], calls: str, fault: str) -> Iterator[Tracer]:
    """From the moment in which it has all of them, and those that they start."""
    of_whom = [argument for pid in pids for argument in ("-p", str(pid))]
    command = [require_debian("strace"), "-f", *of_whom, "-o", str(log)]
    command += ["-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _ in range(len(of_whom) // 2):
            said = process.stderr.readline()
            assert "attached" in said, said
        try:
            yield Tracer(log)
        finally:
            process.terminate()
