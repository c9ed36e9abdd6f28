"""The program in `foreign/`, built on Go's own packages for notes and trees, asked line by line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.programs.golang import build_go

SOURCE = Path(__file__).parent / "foreign"


class ForeignLog:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, do: str, **about: Any) -> dict[str, Any]:
        """What goes wrong stands under `Error`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"Do": do} | about) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def get(self, do: str, **about: Any) -> dict[str, Any]:
        answer = self.ask(do, **about)
        assert not answer["Error"], answer["Error"]
        return answer


@contextmanager
def foreign_log(folder: Path) -> Iterator[ForeignLog]:
    command = (build_go(SOURCE, folder),)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield ForeignLog(process)


@contextmanager
def foreign_witness(folder: Path, secret: str, log_key: str) -> Iterator[str]:
    """The address of a witness that knows one log and remembers nothing after its end."""
    command = (build_go(SOURCE, folder), "witness", "127.0.0.1:0", secret, log_key)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://{process.stdout.readline().strip()}"
        finally:
            process.kill()
