"""Row 36: two web processes behind haproxy are restarted one after the other, and nobody notices."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from accounts.models import User
from tests.contract.streams.publishing import publish_signal
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.services import free_port
from tests.reliability.clients.ledger import Frame, SignalLedger
from tests.reliability.clients.traffic import Asking
from tests.reliability.clients.writer import Writer
from tests.reliability.conftest import Tell
from tests.reliability.services.haproxy import haproxy, is_up
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.supervised import command_of

CLIENTS, ASKERS = 10, 3
PUBLISH_EVERY_S = 0.2
# Signals, between one restart and the next.
SOME = 5
# However slow the machine is, the proxy has noticed by then.
DRAIN_S = 6.0
pytestmark = pytest.mark.row("36", "no REST request failed, no signal lost")


class Moving(SignalLedger):
    """It comes back by the number of the last signal it heard, wherever it is let in."""

    notices = 0

    def _keep(self, frame: Frame) -> None:
        if frame.get("type") == "notice":
            self.notices += frame["code"] == "restarting"
        else:
            super()._keep(frame)


class Publishing(Writer):
    """Signals, one after the other."""

    def __init__(self, installation: Installation, symbol: str, publisher: User) -> None:
        self._installation, self._symbol, self._publisher = installation, symbol, publisher
        self.sent: list[str] = []

    def run(self) -> None:
        with self._installation.orm():
            while not self.has_ended.wait(PUBLISH_EVERY_S):
                self.sent.append(publish_signal(self._symbol, self._publisher))

    async def goes_on(self) -> None:
        enough = len(self.sent) + SOME
        await until(lambda: len(self.sent) >= enough)


class Web:
    """One of two processes, which the test may end by a signal and start again."""

    def __init__(self, installation: Installation, running: ExitStack) -> None:
        self._installation, self.port = installation, free_port()
        self._stack = running.enter_context(ExitStack())
        self._process = self._start()

    def _start(self) -> Process:
        return self._stack.enter_context(self._installation.web_process(self.port, DRAIN_S=str(DRAIN_S)))

    def restart(self, front: int) -> None:
        os.kill(self._process.pid, signal.SIGTERM)
        wait_until(lambda: not command_of(self._process.pid))
        self._stack.close()
        self._process = self._start()
        wait_until(lambda: is_up(front, self.port))


def prepared(installation: Installation, symbol: str) -> tuple[str, str, User]:
    with installation.orm():
        make_instrument(symbol)
        tier = make_tier("rolling", streams=1_000, requests_per_minute=10_000_000)
        publisher = make_user(f"{symbol.lower()}-publisher")
        return make_key(make_account(tier=tier)), publish_signal(symbol, publisher), publisher


async def roll(
    installation: Installation, directory: Path, symbol: str
) -> tuple[Counter[str], list[Moving], list[str]]:
    """What REST answered, who listened, and what was published."""
    key, since, publisher = await asyncio.to_thread(prepared, installation, symbol)
    asking, has_ended = Asking("/api/signals", key), threading.Event()
    clients = [Moving(key, [symbol], since) for _ in range(CLIENTS)]
    with ThreadPoolExecutor(ASKERS) as threads, ExitStack() as running:
        webs = [Web(installation, running) for _ in range(2)]
        front = running.enter_context(haproxy(directory, [web.port for web in webs]))
        coming = [asyncio.create_task(client.keep_coming(front)) for client in clients]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(client.is_placed.wait() for client in clients))
        running.callback(has_ended.set)
        for _ in range(ASKERS):
            threads.submit(asking.run, front, has_ended)
        with Publishing(installation, symbol, publisher) as publishing:
            await publishing.goes_on()
            for web in webs:
                await asyncio.to_thread(web.restart, front)
                await publishing.goes_on()
        has_ended.set()
        # What has not come by then is lost.
        with suppress(TimeoutError):
            await until(lambda: all(len(set(each.ids)) >= len(publishing.sent) for each in clients))
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
    return asking.seen, clients, publishing.sent


async def test_a_rolling_restart_fails_no_request_and_loses_no_signal(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    seen, clients, sent = await roll(scaled, tmp_path, "ROLLED")
    faults = [client.faults_of_ids(sent) for client in clients]
    lost, repeated, disordered = (sum(each) for each in zip(*faults, strict=True))
    told = sum(client.notices for client in clients)
    tell(f"{seen.total()} requests: {dict(seen)}")
    tell(f"{len(sent)} signals to each of {CLIENTS} clients: {lost} lost, {repeated} duplicated")
    tell(f"{told} disconnections were announced")
    assert set(seen) == {"200"}
    assert (lost, repeated, disordered) == (0, 0, 0)
    assert all(client.sessions > 1 for client in clients)
    assert told >= CLIENTS
