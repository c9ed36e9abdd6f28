"""Row 36: two web processes behind haproxy are restarted one after the other, and nobody notices."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.streams.publishing import publish_signal
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.services import free_port
from tests.reliability.clients.ledger import Frame, SignalLedger
from tests.reliability.conftest import Tell
from tests.reliability.services.haproxy import haproxy, is_up
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import command_of

CLIENTS, ASKERS = 10, 3
PUBLISH_EVERY_S, ASK_EVERY_S = 0.2, 0.05
# Signals, between one restart and the next.
SOME = 5
# However slow the machine is, the proxy has noticed by then.
DRAIN_S = 6.0
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("36", "no REST request failed, no signal lost"),
]


class Moving(SignalLedger):
    """It comes back by the number of the last signal it heard, wherever it is let in."""

    def __init__(self, key: str, symbol: str, since: str) -> None:
        super().__init__(key, [symbol], since)
        self.notices: list[str] = []

    def _keep(self, frame: Frame) -> None:
        if frame.get("type") == "notice":
            self.notices.append(frame["code"])
        else:
            super()._keep(frame)


class Asking:
    """Keeps asking over the proxy, each on a connection of its own that is kept alive."""

    def __init__(self, port: int, key: str) -> None:
        self._url, self._headers = f"http://127.0.0.1:{port}/api/signals", {"X-API-Key": key}
        self._has_ended = threading.Event()
        self.seen: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(ASKERS)]

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with httpx.Client(timeout=PATIENCE_S, headers=self._headers) as client:
            while not self._has_ended.wait(ASK_EVERY_S):
                try:
                    answer = client.get(self._url)
                    by = "" if "X-API-Version" in answer.headers else " of haproxy"
                    self.seen[f"{answer.status_code}{by}"] += 1
                except httpx.TransportError as error:
                    self.seen[type(error).__name__] += 1


class Publishing:
    """Signals, one after the other, until it is left."""

    def __init__(self, installation: Installation, symbol: str, publisher: Any) -> None:
        self._installation, self._symbol, self._publisher = installation, symbol, publisher
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self.sent: list[str] = []

    def __enter__(self) -> Publishing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    async def goes_on(self) -> None:
        enough = len(self.sent) + SOME
        await until(lambda: len(self.sent) >= enough)

    def _publish(self) -> None:
        with self._installation.orm():
            while not self._has_ended.wait(PUBLISH_EVERY_S):
                self.sent.append(publish_signal(self._symbol, self._publisher))


@contextmanager
def pair(installation: Installation, ports: list[int]) -> Iterator[list[ExitStack]]:
    """The two processes; each can be ended by closing its stack, once it has been told to stop."""
    with ExitStack() as all_of_them:
        stacks = []
        for port in ports:
            stack = all_of_them.enter_context(ExitStack())
            stack.enter_context(installation.web_process(port, DRAIN_S=str(DRAIN_S)))
            stacks.append(stack)
        yield stacks


def restart(
    installation: Installation, stack: ExitStack, front: int, port: int, number: signal.Signals
) -> None:
    pid = pid_at(port)
    os.kill(pid, number)
    wait_until(lambda: not command_of(pid))
    stack.close()
    stack.enter_context(installation.web_process(port, DRAIN_S=str(DRAIN_S)))
    wait_until(lambda: is_up(front, port))


def wait_for_all(clients: list[Moving], count: int) -> None:
    """What has not come by the end is lost."""
    with suppress(AssertionError):
        wait_until(lambda: all(len(set(client.ids)) >= count for client in clients))


def pid_at(port: int) -> int:
    """Of the server that was started for this port."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and f"serve\0--port\0{port}\0" in command_of(int(entry.name)):
            return int(entry.name)
    raise LookupError(port)


async def roll(
    installation: Installation, directory: Path, number: signal.Signals, symbol: str
) -> tuple[Counter[str], list[Moving], list[str]]:
    def prepare() -> tuple[str, str, Any]:
        with installation.orm():
            make_instrument(symbol)
            tier = make_tier("rolling", streams=1_000, requests_per_minute=10_000_000)
            publisher = make_user(f"{symbol.lower()}-publisher")
            return make_key(make_account(tier=tier)), publish_signal(symbol, publisher), publisher

    key, since, publisher = await asyncio.to_thread(prepare)
    ports = [free_port(), free_port()]
    with pair(installation, ports) as stacks, haproxy(directory, ports) as port:
        clients = [Moving(key, symbol, since) for _ in range(CLIENTS)]
        coming = [asyncio.create_task(client.keep_coming(port)) for client in clients]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(client.is_placed.wait() for client in clients))
        with Asking(port, key) as asking, Publishing(installation, symbol, publisher) as publishing:
            await publishing.goes_on()
            for stack, at in zip(stacks, ports, strict=True):
                await asyncio.to_thread(restart, installation, stack, port, at, number)
                await publishing.goes_on()
        await asyncio.to_thread(wait_for_all, clients, len(publishing.sent))
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
    return asking.seen, clients, publishing.sent


async def test_a_rolling_restart_fails_no_request_and_loses_no_signal(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    seen, clients, sent = await roll(scaled, tmp_path, signal.SIGTERM, "ROLLED")
    faults = [client.faults_of_ids(sent) for client in clients]
    lost, repeated, disordered = (sum(each) for each in zip(*faults, strict=True))
    told = sum(notice == "restarting" for client in clients for notice in client.notices)
    tell(f"{seen.total()} requests: {dict(seen)}")
    tell(f"{len(sent)} signals to each of {CLIENTS} clients: {lost} lost, {repeated} duplicated")
    tell(f"{told} disconnections were announced")
    assert set(seen) == {"200"}
    assert (lost, repeated, disordered) == (0, 0, 0)
    assert all(client.sessions > 1 for client in clients)
    assert told >= CLIENTS
