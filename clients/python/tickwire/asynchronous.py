"""The client that does not block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .answers import FAILURES, Value, read, wait_before_repeating
from .calls import USER_AGENT, Calls, as_request
from .downloads import Download
from .errors import ApiError, Json, TickwireError
from .missed import Hole, OnMissed, log_unfilled, warn
from .pacing import AsyncPacedClient
from .pages import Place, Route
from .session import CLOSE_S, SILENCE_S, OnNotice, Session, address, log_notice
from .state import State
from .types import ArchiveFile, NewSignal, NewsItem, Signal, SignalClosed, TickItem
from .walks import AsyncHistory, AsyncWalk

C = TypeVar("C")


class AsyncClient(
    Calls[AsyncWalk[Signal], AsyncWalk[NewsItem], AsyncWalk[ArchiveFile], AsyncWalk[TickItem], AsyncHistory]
):
    def __init__(
        self,
        api_key: str | None = None,
        url: str | None = None,
        *,
        timeout: float = 10,
        retries: int = 2,
        walk_retries: int = 8,
    ) -> None:
        super().__init__(api_key, url, timeout, retries, walk_retries)
        self._http = AsyncPacedClient(**self._options())
        self._sockets: set[ClientConnection] = set()
        self._is_closed = False

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Also ends its streams, so that nobody has to close each of them."""
        self._is_closed = True
        await asyncio.gather(*(socket.close() for socket in self._sockets))
        await self._http.aclose()

    async def get(
        self,
        path: str,
        in_path: Mapping[str, str] | None = None,
        query: Mapping[str, Value] | None = None,
        /,
        **parameters: Value,
    ) -> Json:
        where, asked = as_request(path, in_path, query, parameters)
        for attempt in count():
            try:
                return read(await self._http.get(where, params=asked))
            except (ApiError, httpx.TransportError) as failure:
                wait_s = wait_before_repeating(self._address, failure, attempt, self.retries)
            await asyncio.sleep(wait_s)
        raise AssertionError("unreachable")

    def walk(self, route: Route) -> AsyncWalk[Any]:
        return AsyncWalk(self, route)

    def _history(self, route: Route) -> AsyncHistory:
        return AsyncHistory(self, route)

    async def page(self, place: Place[C]) -> C:
        while True:
            try:
                return place.take(
                    await self._http.get(place.path, params=place.query(), headers=place.headers)
                )
            except FAILURES as failure:
                wait_s = place.wait_after(failure)
            await asyncio.sleep(wait_s)

    async def download(self, path: str, to: str | Path) -> Path:
        """Downloads a file of the archive to a file or into a folder. Continues where an earlier attempt
        stopped; the file appears once its SHA-256 matches the one that the service names."""
        download = Download(path, to, self._address, self.retries, self.walk_retries)
        while True:
            try:
                if (file := await self._download(download)) is not None:
                    return file
                continue
            except FAILURES as failure:
                wait_s = download.wait_after(failure)
            await asyncio.sleep(wait_s)

    async def _download(self, download: Download) -> Path | None:
        async with self._http.stream("GET", download.path, headers=download.headers()) as answer:
            if not answer.is_success:
                await answer.aread()
            write = download.begin(answer)
            if write is None:
                return None
            async for chunk in answer.aiter_raw():
                await asyncio.to_thread(write, chunk)
        return await asyncio.to_thread(download.finish)

    # Written out: mypy takes the two frames for one where it infers them, as with the other streams.
    def follow_signals(
        self,
        *symbols: str,
        closures: bool = True,
        since: str | None = None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
    ) -> AsyncGenerator[NewSignal | SignalClosed, None]:
        """Signals when they are published and, with a `type`, when they end. With `since`, first those after
        that one."""
        manner = self._manner(on_missed, on_notice, state)
        return self.follow(self.signal_session(symbols, since, closures=closures, manner=manner))

    async def follow(self, session: Session) -> AsyncGenerator[Any, None]:
        async with aclosing(self._texts(session)) as texts:
            async for text in texts:
                for heard in session.hear(text):
                    if isinstance(heard, Hole):
                        async for frame in self._fill(session, heard):
                            yield frame
                    else:
                        session.deliver(heard)
                        yield heard

    async def _texts(self, session: Session) -> AsyncGenerator[str | bytes, None]:
        while not self._is_closed:
            try:
                url = address(self.url, session)
                async with connect(
                    url, max_size=None, user_agent_header=USER_AGENT, close_timeout=CLOSE_S
                ) as socket:
                    if self._is_closed:
                        return
                    with self._kept(socket):
                        await socket.send(session.subscribe())
                        while True:
                            async with asyncio.timeout(SILENCE_S):
                                text = await socket.recv()
                            yield text
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as failure:
                if self._is_closed:
                    return
                wait_s = session.wait_after_end(failure)
                if wait_s is None:
                    raise self._not_opened(failure) from failure
            await asyncio.sleep(wait_s)

    async def _fill(self, session: Session, hole: Hole) -> AsyncGenerator[Any, None]:
        """The frames that are missing, and then the report."""
        fill = session.fill_of(hole)
        if fill is not None:
            try:
                while not fill.is_done:
                    if fill.wait_s:
                        await asyncio.sleep(fill.wait_s)
                    for frame in fill.take(await self.get(fill.path, **fill.parameters())):
                        session.deliver(frame, fill.epoch)
                        yield frame
            except (TickwireError, httpx.DecodingError) as failure:
                log_unfilled(hole, failure)
        session.report(hole, hole.missed if fill is None else fill.missed)

    @contextmanager
    def _kept(self, socket: ClientConnection) -> Iterator[None]:
        self._sockets.add(socket)
        try:
            yield
        finally:
            self._sockets.discard(socket)
