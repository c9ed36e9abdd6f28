"""Those who read while something fails: sockets that come back with their place, and requests."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from tests.patience import wait_until
from tests.reliability.clients.swarm import Listener, Reply

from .damage import MINUTE_S, Admission

PATH = "/ws/market"
AGAIN_S, CONNECT_S = 0.1, 3.0
# As the clients that we ship.
SILENCE_S = 20.0


class CountingListener(Listener):
    """Keeps apart what it missed and what it heard twice."""

    doubled = 0

    def __init__(self, message: Reply, client: StreamClient) -> None:
        super().__init__(PATH, message)
        self._client = client

    def _note(self, price: Any) -> None:
        symbol, seq = price[1], int(price[3])
        last = self.positions.get(symbol, seq - 1)
        self._client.hear(seq - last - 1)
        self.positions[symbol] = max(seq, last)
        self.frames += 1


class StreamClient:
    """Comes back wherever it is let in, with its place. What it missed counts unless it was told."""

    def __init__(self, ports: Sequence[int], message: Reply) -> None:
        self._ports, self._message = itertools.cycle(ports), message
        self._epoch = ""
        self._positions: dict[bytes, int] = {}
        self._wait_s = AGAIN_S
        self.session: CountingListener | None = None
        self.forget()

    def forget(self) -> None:
        """What was counted so far."""
        self.take_gaps()
        self.missed = self.doubled = self.gaps = self.frames = self.returns = 0
        self.silent_s, self._heard_s = 0.0, time.monotonic()
        self._stale_before = self._told_stale

    def hear(self, ahead: int) -> None:
        now_s = time.monotonic()
        self.silent_s, self._heard_s = max(self.silent_s, now_s - self._heard_s), now_s
        self.missed += max(0, ahead)
        self.doubled += ahead < 0
        self.frames += 1

    @property
    def was_told_stale(self) -> bool:
        return self._told_stale > self._stale_before

    @property
    def _told_stale(self) -> int:
        return 0 if self.session is None else self.session.notices.get("stale", 0)

    async def keep_coming(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    session = await self._connect()
                if session is not None:
                    await self._follow(session)
            await asyncio.sleep(self._wait_s)

    async def _connect(self) -> CountingListener | None:
        wishes: Reply = {}
        if self._epoch:
            positions = {symbol.decode(): seq for symbol, seq in self._positions.items()}
            wishes = {"resume": {"epoch": self._epoch, "positions": positions}}
        loop = asyncio.get_running_loop()
        made = lambda: CountingListener(self._message | wishes, self)  # noqa: E731 - a factory
        _, session = await loop.create_connection(made, "127.0.0.1", next(self._ports))
        await asyncio.wait((session.reply, session.ended), return_when=asyncio.FIRST_COMPLETED)
        reply = {} if session.reply.cancelled() or not session.reply.done() else session.reply.result()
        self._wait_s = reply.get("error", {}).get("retry_after", AGAIN_S)
        if session.ended.done() or reply["type"] != "subscribed":
            session.transport.abort()
            return None
        self._begin(session)
        return session

    def _begin(self, session: CountingListener) -> None:
        reply = session.reply.result()
        if self._epoch and not reply.get("recovered", True):
            self.gaps += 1
        elif self._positions:
            self.missed += sum(
                reply["positions"][name.decode()] != seq for name, seq in self._positions.items()
            )
        self.returns += bool(self._epoch)
        self._epoch, self.session, self._stale_before = reply["epoch"], session, 0

    async def _follow(self, session: CountingListener) -> None:
        try:
            while not session.ended.done() and time.monotonic() - self._heard_s < SILENCE_S:
                await asyncio.wait((session.ended,), timeout=1.0)
        finally:
            session.transport.abort()
            self.take_gaps()
            self._positions = dict(session.positions)

    def take_gaps(self) -> None:
        if self.session is not None and self.session.gaps:
            self.gaps += len(self.session.gaps)
            self._epoch = self.session.gaps[-1]
            self.session.gaps.clear()


class Asker:
    """So many requests a second over some connections, each to the next server after a fault."""

    CONNECTIONS = 24

    def __init__(self, ports: Sequence[int], key: str, path: str, a_second: float) -> None:
        self._ports, self._path = list(ports), path
        self._a_second = a_second
        self._sent_s = [0.0] * self.CONNECTIONS
        self.use(key)
        self.forget()

    def forget(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.failed_at: list[float] = []
        """When requests were sent that failed."""
        self._silent_s, self._answered_s = 0.0, time.monotonic()

    @property
    def unanswered_s(self) -> float:
        """The longest time without an answer, also if it has not ended."""
        return max(self._silent_s, time.monotonic() - self._answered_s)

    def use(self, key: str) -> None:
        """From now on, and count what is let in anew."""
        self._key = key
        self.admitted_at: list[float] = []

    async def ask(self, number: int) -> None:
        """Until cancelled."""
        every_s = self.CONNECTIONS / self._a_second
        turn = number
        # Not all at the same moment.
        await asyncio.sleep(number / self._a_second)
        while True:
            turn += 1
            try:
                self._sent_s[number] = time.monotonic()
                async with asyncio.timeout(CONNECT_S):
                    streams = await asyncio.open_connection("127.0.0.1", self._ports[turn % len(self._ports)])
                try:
                    await self._converse(number, *streams, every_s)
                finally:
                    streams[1].transport.abort()
            except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
                self.statuses[0] += 1
                self.failed_at.append(self._sent_s[number])
                await asyncio.sleep(AGAIN_S)

    async def _converse(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, every_s: float
    ) -> None:
        """Until the server closes in order: with an answer that says so, or between two of them."""
        next_s, is_open = time.monotonic(), True
        while is_open and not reader.at_eof():
            next_s, key = max(next_s + every_s, time.monotonic()), self._key
            head = f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n"
            self._sent_s[number] = time.monotonic()
            writer.write(head.encode())
            async with asyncio.timeout(10.0):
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
                fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
                await reader.readexactly(int(fields.get("content-length", 0)))
            status = int(lines[0].split()[1])
            if status >= 500:
                self.failed_at.append(self._sent_s[number])
            if key == self._key:
                self._note(status)
            is_open = fields.get("connection") != "close"
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))

    def _note(self, status: int) -> None:
        self.statuses[status] += 1
        if status == 200:
            now_s = time.monotonic()
            self.admitted_at.append(now_s)
            self._silent_s, self._answered_s = max(self._silent_s, now_s - self._answered_s), now_s

    def admission(self) -> Admission:
        return Admission(self.most_in_a_minute(), self.statuses.total() - self.statuses[0])

    def most_in_a_minute(self) -> int:
        """Requests that were let in within any sixty seconds."""
        most = first = 0
        for last, at in enumerate(self.admitted_at):
            while at - self.admitted_at[first] >= MINUTE_S:
                first += 1
            most = max(most, last - first + 1)
        return most


class Readers:
    """All of them in a loop of their own, in a thread."""

    def __init__(self, clients: Sequence[StreamClient], askers: Sequence[Asker]) -> None:
        self.clients, self.askers = clients, askers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []

    def __enter__(self) -> Readers:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        for number, client in enumerate(self.clients):
            self._tasks.append(asyncio.create_task(client.keep_coming()))
            if number % 100 == 99:
                await asyncio.sleep(0.2)
        for asker in self.askers:
            self._tasks += [asyncio.create_task(asker.ask(number)) for number in range(asker.CONNECTIONS)]

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Whatever was aborted closes in the next turns of the loop.
        await asyncio.sleep(AGAIN_S)

    def call(self, act: Callable[[], None]) -> None:
        """In their loop, while none of them does anything."""

        async def run() -> None:
            act()

        self._run(run())

    def forget(self) -> None:
        for client in self.clients:
            client.forget()
        for asker in self.askers:
            asker.forget()

    def wait_until_all_hear(self, within_s: float) -> float:
        """Seconds until each has heard something new."""
        frames = [client.frames for client in self.clients]

        def deaf() -> int:
            return sum(client.frames == before for client, before in zip(self.clients, frames, strict=True))

        try:
            return wait_until(lambda: not deaf(), within_s)
        except AssertionError:
            raise AssertionError(f"{deaf()} of {len(frames)} clients hear nothing") from None
