"""What goes on at a service while its processes are replaced: streams that resume, pollers, and sources that
push over HTTP and WebSocket. Each keeps what went wrong."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from core import threads
from market.engine import push_queue
from tests.patience import PATIENCE_S, until
from tests.reliability.clients.ledger import CUT, Frame, Ledger

PUSH_EVERY_S, ASK_EVERY_S = 0.05, 0.2
MOST_UNANSWERED = 5

# After so long without a word of the engine or the database the service says when to ask again.
SERVICE_WAITS_S = min(push_queue.PATIENCE_S, threads.PROMPTLY_S)


def is_held_up(status: int, retry_after: object, took_s: float) -> bool:
    """Whether the machine was too slow for the service. What is refused at once, or by a proxy, is no such
    thing."""
    return status == 503 and retry_after is not None and took_s >= SERVICE_WAITS_S


class ResumingClient(Ledger):
    """Of prices. It comes back as soon as it is sent away."""

    def __init__(self, key: str, symbols: list[str]) -> None:
        super().__init__("/ws/market", key, symbols)
        self.refusals: Counter[str] = Counter()
        self.ends: Counter[int] = Counter()
        self.notices = 0

    async def _listen(self, connection: ClientConnection) -> None:
        try:
            await super()._listen(connection)
        finally:
            if connection.close_code is not None:
                self.ends[connection.close_code] += 1

    def _begin(self, reply: Frame) -> None:
        if reply["type"] != "subscribed":
            self.refusals[reply["error"]["code"]] += 1
            raise ConnectionResetError
        super()._begin(reply)

    def _keep(self, frame: Frame) -> None:
        if "seq" in frame:
            super()._keep(frame)
        elif frame["type"] == "notice":
            self.notices += frame["code"] == "restarting"

    def holes(self) -> int:
        """Numbers that are missing, or came again."""
        return sum(
            frame["seq"] != before + 1
            for symbol, frames in self.heard.items()
            for before, frame in zip(
                [self.started_after[symbol], *(frame["seq"] for frame in frames)], frames, strict=False
            )
        )


class Source:
    """Its own instrument, and ticks with numbers that rise."""

    def __init__(self, ingest_key: str, symbol: str) -> None:
        self.symbol, self._headers = symbol, {"X-Ingest-Key": ingest_key}
        self.sent = self.taken = 0
        self.verdicts: Counter[str] = Counter()
        self.held_up: Counter[int] = Counter()
        """How often each number had as its answer that nobody knows what became of it."""

    def next(self) -> dict[str, Any]:
        self.sent += 1
        bid = round(1 + self.sent % 100 / 100_000, 5)
        now_ms = time.time_ns() // 1_000_000
        return {
            "symbol": self.symbol, "bid": bid, "ask": bid + 0.0002, "time": now_ms, "seq": self.sent
        }  # fmt: skip

    def note(self, answer: Frame, seq: int) -> None:
        """Of one tick. One that had no answer may have been taken all the same."""
        verdict = "accepted" if answer["accepted"] else answer["rejected"][0]["code"]
        if verdict == "duplicate" and self.held_up[seq]:
            # It was taken before, or one behind it was: this one is told of already.
            return
        self.taken += verdict in ("accepted", "duplicate")
        self.verdicts[verdict] += 1


class PushingClient(Source):
    """Over HTTP, on a connection that is kept."""

    async def run(self, port: int, has_ended: asyncio.Event) -> None:
        url = f"http://127.0.0.1:{port}/ingest/ticks"
        async with httpx.AsyncClient(timeout=PATIENCE_S, headers=self._headers) as client:
            while not has_ended.is_set():
                await self._push(client, url)
                await asyncio.sleep(PUSH_EVERY_S)

    async def _push(self, client: httpx.AsyncClient, url: str) -> None:
        """The same again until it is answered."""
        tick, is_answered = self.next(), False
        while not is_answered:
            began_s = time.monotonic()
            try:
                answer = await client.post(url, json=[tick])
            except httpx.TransportError as error:
                self.verdicts[type(error).__name__] += 1
            else:
                is_answered = answer.status_code == 200
                if is_answered:
                    self.note(answer.json(), tick["seq"])
                    return
                took_s, wait = time.monotonic() - began_s, answer.headers.get("Retry-After")
                if is_held_up(answer.status_code, wait, took_s):
                    self.held_up[tick["seq"]] += 1
                else:
                    self.verdicts[str(answer.status_code)] += 1
                await asyncio.sleep(PUSH_EVERY_S)


class PushingSocket(Source):
    """Sends without waiting for answers; once told, it keeps what it has, reads on and comes back."""

    def __init__(self, ingest_key: str, symbol: str) -> None:
        super().__init__(ingest_key, symbol)
        self._unanswered: dict[int, dict[str, Any]] = {}
        self._sent_s: dict[int, float] = {}
        self._again: list[dict[str, Any]] = []
        """Those that were refused for the moment."""
        self.ends: Counter[int] = Counter()
        self.left_over = 0
        """Ticks that had no answer when the socket was closed."""

    async def run(self, port: int, has_ended: asyncio.Event) -> None:
        while not has_ended.is_set() or self._unanswered:
            try:
                await self._session(port, has_ended)
            except CUT as error:
                self.verdicts[type(error).__name__] += 1
                await asyncio.sleep(0.01)

    async def _session(self, port: int, has_ended: asyncio.Event) -> None:
        url, is_told = f"ws://127.0.0.1:{port}/ws/ingest", asyncio.Event()
        async with connect(
            url,
            compression=None,
            additional_headers=self._headers,
            ping_interval=None,
            open_timeout=PATIENCE_S,
        ) as connection:
            reading = asyncio.create_task(self._read(connection, is_told))
            self._again = list(self._unanswered.values())
            while not (is_told.is_set() or reading.done()):
                if has_ended.is_set() and not self._unanswered:
                    await connection.close()
                    await reading
                    return
                with suppress(ConnectionClosed):
                    await self._send_some(connection, has_ended)
                await asyncio.sleep(PUSH_EVERY_S)
            await reading
            self.ends[connection.close_code or 0] += 1
        self.left_over += sum(not self.held_up[seq] for seq in self._unanswered)

    async def _send_some(self, connection: ClientConnection, has_ended: asyncio.Event) -> None:
        while self._again:
            await self._send(connection, self._again.pop(0))
        if len(self._unanswered) < MOST_UNANSWERED and not has_ended.is_set():
            tick = self.next()
            self._unanswered[tick["seq"]] = tick
            await self._send(connection, tick)

    async def _send(self, connection: ClientConnection, tick: dict[str, Any]) -> None:
        self._sent_s[tick["seq"]] = time.monotonic()
        await connection.send(json.dumps({"id": tick["seq"], "ticks": [tick]}))

    async def _read(self, connection: ClientConnection, is_told: asyncio.Event) -> None:
        with suppress(ConnectionClosed):
            async for text in connection:
                frame = json.loads(text)
                if frame["type"] == "result":
                    self._unanswered.pop(frame["id"], None)
                    self.note(frame, frame["id"])
                elif frame["type"] == "notice":
                    is_told.set()
                elif frame["type"] == "error":
                    self._note_error(frame["error"], frame.get("id", 0))

    def _note_error(self, error: Frame, seq: int) -> None:
        took_s = time.monotonic() - self._sent_s.get(seq, time.monotonic())
        if is_held_up(error["status"], error.get("retry_after"), took_s):
            self.held_up[seq] += 1
        else:
            self.verdicts[error["code"]] += 1
        if (tick := self._unanswered.get(seq)) is not None:
            self._again.append(tick)


class Asking:
    """One that polls, on a connection that is kept; in a thread, as programs do it."""

    def __init__(self, path: str, key: str) -> None:
        self._path, self._headers = path, {"X-API-Key": key}
        self.seen: Counter[str] = Counter()
        self.held_up = 0

    def run(self, port: int, has_ended: threading.Event) -> None:
        url = f"http://127.0.0.1:{port}{self._path}"
        with httpx.Client(timeout=PATIENCE_S, headers=self._headers) as client:
            while not has_ended.wait(ASK_EVERY_S):
                began_s = time.monotonic()
                try:
                    answer = client.get(url)
                    took_s, wait = time.monotonic() - began_s, answer.headers.get("Retry-After")
                    if is_held_up(answer.status_code, wait, took_s):
                        self.held_up += 1
                    else:
                        self.seen[str(answer.status_code)] += 1
                except httpx.TransportError as error:
                    self.seen[type(error).__name__] += 1


class Traffic:
    def __init__(
        self,
        streams: Sequence[ResumingClient],
        pollers: Sequence[Asking],
        sources: Sequence[PushingClient | PushingSocket],
    ) -> None:
        self.streams, self.pollers, self.sources = streams, pollers, sources

    @asynccontextmanager
    async def at(self, port: int) -> AsyncIterator[None]:
        """From the moment all streams know their place until all have heard what was taken."""
        has_ended, polling_has_ended = asyncio.Event(), threading.Event()
        coming = [asyncio.create_task(client.keep_coming(port)) for client in self.streams]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(client.is_placed.wait() for client in self.streams))
        pushing = [asyncio.create_task(source.run(port, has_ended)) for source in self.sources]
        threads = [
            threading.Thread(target=each.run, args=(port, polling_has_ended), daemon=True)
            for each in self.pollers
        ]
        for thread in threads:
            thread.start()
        try:
            yield
            has_ended.set()
            await asyncio.gather(*pushing)
            # What is missing then is told by numbers.
            with suppress(TimeoutError):
                await until(lambda: all(map(self.has_heard_all, self.streams)))
        finally:
            polling_has_ended.set()
            for task in (*coming, *pushing):
                task.cancel()
            await asyncio.gather(*coming, *pushing, return_exceptions=True)
            for thread in threads:
                await asyncio.to_thread(thread.join)

    def has_heard_all(self, client: ResumingClient) -> bool:
        return all(len(client.heard[source.symbol]) >= source.taken for source in self.sources)

    def lost(self) -> int:
        """Ticks that were taken and that a client never heard of."""
        return sum(
            max(0, source.taken - len(client.heard[source.symbol]))
            for client in self.streams
            for source in self.sources
        )

    def holes(self) -> int:
        return sum(client.holes() + client.unrecovered for client in self.streams)

    def answers(self) -> Counter[str]:
        return sum((poller.seen for poller in self.pollers), Counter[str]())

    def pushes(self) -> Counter[str]:
        return sum((source.verdicts for source in self.sources), Counter[str]())

    def held_up(self) -> int:
        pushes = sum(source.held_up.total() for source in self.sources)
        return pushes + sum(poller.held_up for poller in self.pollers)

    def refusals(self) -> Counter[str]:
        return sum((client.refusals for client in self.streams), Counter[str]())

    def unannounced(self) -> int:
        """Streams that were closed without being told before."""
        return sum(client.ends.total() - client.notices for client in self.streams)

    def ends(self) -> Counter[int]:
        """The codes with which streams and pushing sockets were closed."""
        sockets = [source.ends for source in self.sources if isinstance(source, PushingSocket)]
        return sum((*(client.ends for client in self.streams), *sockets), Counter[int]())
