"""The client that does not block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .answers import FAILURES, Value, given, read, wait_before_repeating
from .calls import USER_AGENT, Calls
from .downloads import Download
from .errors import ApiError, Json
from .pages import Place, Route
from .session import (
    CLOSE_S,
    SILENCE_S,
    CandleSession,
    NewsSession,
    OnMissed,
    OnNotice,
    Session,
    SignalSession,
    address,
    log_notice,
    warn,
)
from .types import (
    AbsorptionSignal,
    ArchiveFile,
    CandleUpdate,
    NewSignal,
    NewsItem,
    OrderFlowTick,
    PriceTick,
    PublishedNews,
    Signal,
    SignalClosed,
)
from .walks import AsyncHistory, AsyncWalk

C = TypeVar("C")


class AsyncClient(Calls[AsyncWalk[Signal], AsyncWalk[NewsItem], AsyncWalk[ArchiveFile], AsyncHistory]):
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
        self._http = httpx.AsyncClient(**self._options())
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

    async def get(self, path: str, **parameters: Value) -> Json:
        for attempt in count():
            try:
                return read(await self._http.get(path, params=given(parameters)))
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

    def watch(
        self, *symbols: str, on_missed: OnMissed = warn, on_notice: OnNotice = log_notice
    ) -> AsyncGenerator[PriceTick, None]:
        """Prices as they happen."""
        return self._follow(Session("/ws/market", self.api_key, symbols, ["snapshot"], on_missed, on_notice))

    def order_flow(
        self, *symbols: str, on_missed: OnMissed = warn, on_notice: OnNotice = log_notice
    ) -> AsyncGenerator[OrderFlowTick | AbsorptionSignal, None]:
        """The volume bought and sold with each tick, and absorption; without symbols, of all instruments."""
        return self._follow(Session("/ws/orderflow", self.api_key, symbols, (), on_missed, on_notice))

    def follow_candles(
        self,
        *symbols: str,
        timeframes: Sequence[str] = ("1m",),
        forming: bool = False,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> AsyncGenerator[CandleUpdate, None]:
        """The last closed candle of each timeframe, which may be days old, then each candle when it closes,
        which is the `time` of its frame. One with the same `candle.time` replaces the earlier one. With
        `forming`, also its state before that, once a second, with `closed` false."""
        session = CandleSession(self.api_key, symbols, timeframes, forming, on_missed, on_notice)
        return self._follow(session)

    def follow_signals(
        self,
        *symbols: str,
        closures: bool = True,
        since: str | None = None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> AsyncGenerator[NewSignal | SignalClosed, None]:
        """Signals when they are published and, with a `type`, when they end. With `since`, first those after
        that one."""
        return self._follow(SignalSession(self.api_key, symbols, closures, since, on_missed, on_notice))

    def follow_news(
        self,
        *symbols: str,
        categories: Sequence[str] = (),
        since: str | int | None = None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> AsyncGenerator[PublishedNews, None]:
        """News items when they enter the feed, of all instruments and categories unless some are named. With
        `since`, first those after the item with that id."""
        return self._follow(NewsSession(self.api_key, symbols, categories, since, on_missed, on_notice))

    async def _follow(self, session: Session) -> AsyncGenerator[Any, None]:
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
                            frame = session.hear(text)
                            if frame is not None:
                                yield frame
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as failure:
                if self._is_closed:
                    return
                wait_s = session.wait_after_end(failure)
            await asyncio.sleep(wait_s)

    @contextmanager
    def _kept(self, socket: ClientConnection) -> Iterator[None]:
        self._sockets.add(socket)
        try:
            yield
        finally:
            self._sockets.discard(socket)
