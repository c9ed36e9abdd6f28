"""Sockets that are cut anywhere: what the sessions of a client heard is what the source sent."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from tests.contract.streams.client import MARKET, ORDERFLOW
from tests.contract.streams.publishing import publish_signal
from tests.factories import make_user
from tests.patience import PATIENCE_S
from tests.reliability.clients.ledger import Ledger, SignalLedger
from tests.reliability.clients.proxy import Proxy, Tamper
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, Tick, streaming

SYMBOLS = ["CUTA", "CUTB", "CUTC"]
TICKS_A_TURN, TURN_S, TURNS_A_SIGNAL = 4, 0.02, 15
# After how long, or how many bytes, a connection is cut in the mean.
MEAN_S, MEAN_BYTES = 0.8, 20_000
CLIENTS = 4


class Source:
    """What it sent, by symbol, and its signals in the order of their commits."""

    def __init__(self, service: StreamService, dice: random.Random) -> None:
        self._service, self._dice = service, dice
        self.ticks: defaultdict[str, list[Tick]] = defaultdict(list)
        self.signals: list[str] = []
        with service.installation.orm():
            self._publisher = make_user()

    def run(self, is_enough: Callable[[], bool]) -> None:
        with self._service.installation.orm():
            for turn in itertools.count():
                if is_enough():
                    return
                self.push()
                if turn % TURNS_A_SIGNAL == 0:
                    self.publish()
                time.sleep(TURN_S)

    def push(self) -> None:
        ticks = self._service.make_ticks(self._dice.choices(SYMBOLS, k=TICKS_A_TURN))
        assert self._service.push(ticks)
        for tick in ticks:
            self.ticks[tick["symbol"]].append(tick)

    def publish(self) -> str:
        self.signals.append(publish_signal(SYMBOLS[0], self._publisher))
        return self.signals[-1]


class Run:
    """One source, and clients each behind a proxy of its own."""

    def __init__(self, service: StreamService, seed: int) -> None:
        self._service, self._seed = service, seed
        self.source = Source(service, random.Random(seed))
        with service.installation.orm():
            since = self.source.publish()
        # Nobody resumes from the number 0: all three streams have told something before.
        for symbol in SYMBOLS:
            service.tick(symbol, 2)
        self.source.signals.clear()
        key = service.make_key()
        self.markets = [Ledger(MARKET, key, SYMBOLS) for _ in range(CLIENTS)]
        self.flows = [Ledger(ORDERFLOW, key, SYMBOLS) for _ in range(CLIENTS)]
        self.signals = [SignalLedger(key, SYMBOLS, since) for _ in range(CLIENTS)]
        self.cuts = 0

    @property
    def ledgers(self) -> list[Ledger]:
        return [*self.markets, *self.flows, *self.signals]

    def until_each_is_cut(self, times: int) -> None:
        asyncio.run(self._run(lambda proxies: all(proxy.cuts >= times for proxy in proxies)))

    def tampered(self, tamper: Tamper, turns: int) -> None:
        """The first client meets a proxy that does that and never cuts."""
        left = iter(range(turns))
        asyncio.run(self._run(lambda _: next(left, None) is None, tamper))

    async def _run(self, is_enough: Callable[[list[Proxy]], bool], tamper: Tamper | None = None) -> None:
        async with AsyncExitStack() as stack:
            proxies = [self._make_proxy(number) for number in range(len(self.ledgers))]
            if tamper is not None:
                proxies[0].tamper, proxies[0].is_calm = tamper, True
            for proxy, ledger in zip(proxies, self.ledgers, strict=True):
                await stack.enter_async_context(proxy)
                task = asyncio.create_task(ledger.keep_coming(proxy.port))
                stack.push_async_callback(end, task)
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(ledger.is_placed.wait() for ledger in self.ledgers))
            await asyncio.to_thread(self.source.run, lambda: is_enough(proxies))
            for proxy in proxies:
                proxy.is_calm = True
            await self._catch_up()
            self.cuts = sum(proxy.cuts for proxy in proxies)

    def _make_proxy(self, number: int) -> Proxy:
        ports = [server.port for server in self._service.servers]
        return Proxy(ports, random.Random(self._seed + number), MEAN_S, MEAN_BYTES)

    async def _catch_up(self) -> None:
        """Whoever does not is missing something, which is counted later."""
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at and not self._has_ended():  # noqa: ASYNC110 - frames are counted
            await asyncio.sleep(0.05)

    def _has_ended(self) -> bool:
        """Whether everybody heard the last of everything."""
        lasts = {symbol: len(ticks) for symbol, ticks in self.source.ticks.items()}
        return all(
            ledger.positions[symbol] == ledger.started_after[symbol] + last
            for ledger in (*self.markets, *self.flows)
            for symbol, last in lasts.items()
        ) and all(ledger.ids[-1:] == self.source.signals[-1:] for ledger in self.signals)

    def faults(self) -> tuple[int, int, int]:
        """Gaps, duplicates, and what is not as it was sent; over all clients."""
        found = [ledger.faults(self.source.ticks, "bid") for ledger in self.markets]
        found += [ledger.faults(self.source.ticks, "time") for ledger in self.flows]
        found += [ledger.faults_of_ids(self.source.signals) for ledger in self.signals]
        gaps, duplicates, wrong = zip(*found, strict=True)
        return sum(gaps), sum(duplicates), sum(wrong)


async def end(task: asyncio.Task[None]) -> None:
    """And say what went wrong in it."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


TIMES = 3
# After the reply, amid the prices, of which four come with a turn.
TAMPERED_FRAME, TURNS = 100, 60
pytestmark = pytest.mark.row("12–14", "no gaps, no duplicates, every client recovers")


@pytest.fixture(scope="module")
def alone(embedded_for_module: Installation) -> Iterator[StreamService]:
    with streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


@pytest.fixture(scope="module")
def apart(scaled: Installation) -> Iterator[StreamService]:
    """Two processes, and who is cut off comes back at the other."""
    with streaming(scaled, 2, SYMBOLS) as running:
        yield running


@pytest.mark.parametrize("kind", ["alone", "apart"])
def test_every_message_arrives_once_over_all_sessions_of_a_client(
    kind: str, request: pytest.FixtureRequest, seed: int, tell: Tell
) -> None:
    check(Run(request.getfixturevalue(kind), seed), TIMES, tell)


def check(run: Run, times: int, tell: Tell) -> None:
    run.until_each_is_cut(times)
    heard = sum(ledger.count for ledger in run.ledgers)
    unrecovered = sum(ledger.unrecovered for ledger in run.ledgers)
    tell(f"{heard:,} frames over {len(run.ledgers)} clients of three streams, cut {run.cuts:,} times")
    tell(f"gaps, duplicates, wrong: {run.faults()}, not recovered: {unrecovered}")
    assert (*run.faults(), unrecovered) == (0, 0, 0, 0)


def treating_one_frame(copies: int) -> Callable[[bytes], bytes]:
    """A proxy that passes one frame of prices on so many times, and all others once."""
    passed = 0

    def tamper(frame: bytes) -> bytes:
        nonlocal passed
        passed += 1
        return frame * copies if passed == TAMPERED_FRAME else frame

    return tamper


@pytest.mark.row("12–14", "one lost frame is one gap, one repeated frame one duplicate")
@pytest.mark.parametrize(("copies", "faults"), [(0, (1, 0, 0)), (2, (0, 1, 1))])
def test_control_one_lost_or_repeated_frame_is_noticed(
    alone: StreamService, seed: int, copies: int, faults: tuple[int, int, int]
) -> None:
    run = Run(alone, seed)
    run.tampered(treating_one_frame(copies), TURNS)
    assert run.faults() == faults
