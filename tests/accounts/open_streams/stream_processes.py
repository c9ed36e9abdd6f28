"""Streams in processes of their own, which a test may stop and kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.reliability.services.processes import ROOT, tied

from .claims import MARKET


class StreamProcess:
    def __init__(self, redis_url: str) -> None:
        environment = os.environ | {"REDIS_URL": redis_url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        self._process = subprocess.Popen(
            tied("-m", "tests.accounts.open_streams.stream_process"),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, name: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, name: str, **arguments: Any) -> Any:
        self.tell(name, **arguments)
        return self.hear()

    def claim(self, account_id: int, count: int, limit: int, **options: Any) -> int:
        asked = {"at": 0, "count": count, "account_id": account_id, "limit": limit, "path": MARKET} | options
        admitted: int = self.ask("claim", **asked)
        return admitted

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def stream_processes(count: int, redis_url: str) -> Iterator[list[StreamProcess]]:
    with ExitStack() as running:
        processes = []
        for _ in range(count):
            processes.append(StreamProcess(redis_url))
            running.callback(processes[-1].close)
        for process in processes:
            process.ask("ended")
        yield processes


def rush(processes: Sequence[StreamProcess], account_id: int, each: int, limit: int, **options: Any) -> int:
    """How many claims, made in all processes at the same moment, were admitted."""
    asked = {"at": time.monotonic() + 0.03, "count": each, "limit": limit, "path": MARKET} | options
    for process in processes:
        process.tell("claim", account_id=account_id, **asked)
    return sum(process.hear() for process in processes)
