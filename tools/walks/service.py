"""A service of our own that runs and records its calls, the venue and the feed of news that it hears, and the
people who use it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.market.feeds.venues.fakes.kraken import FakeKraken
from tests.news.ingest.feed_server import FeedServer
from tests.patience import PATIENCE_S
from tests.programs.running import environment
from tests.programs.services import free_port

from .tracing import Call, decode

T = TypeVar("T")


class Outside:
    """What the service hears of: servers on a loop and a thread of their own."""

    def __init__(self) -> None:
        self.venue, self.feeds = FakeKraken(), FeedServer()
        self._loop = asyncio.new_event_loop()
        self._serving = AsyncExitStack()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    @contextmanager
    def serving(self) -> Iterator[Outside]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        for server in (self.venue, self.feeds):
            self.run(self._serving.enter_async_context(server))
        try:
            yield self
        finally:
            self.run(self._serving.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(PATIENCE_S)
            self._loop.close()


class Service:
    def __init__(self, port: int, control: socket.socket) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._control = control.makefile("rwb")

    def start_recording(self) -> None:
        self._say("start")

    def stop_recording(self) -> list[Call]:
        return decode(self._say("stop"))

    def _say(self, word: str) -> bytes:
        self._control.write(f"{word}\n".encode())
        self._control.flush()
        return self._control.readline()


@contextmanager
def traced_service(var_dir: Path, outside: Outside) -> Iterator[Service]:
    port, control, log = free_port(), var_dir / "walks.socket", var_dir / "serve.log"
    changes = {"PORT": str(port), "WALKS_CONTROL": str(control), **outside.venue.settings}
    command = [sys.executable, "-m", "tools.walks.traced_serve"]
    with ExitStack() as stack:
        out = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command, env=environment(var_dir, **os.environ | changes), stdout=out, stderr=subprocess.STDOUT
        )
        stack.callback(stop, process)
        wait_until_healthy(f"http://127.0.0.1:{port}/healthz", process, log)
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.connect(str(control))
        yield Service(port, listening)


def wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not answers(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"serve did not start:\n{log.read_text()}")
        time.sleep(0.05)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
