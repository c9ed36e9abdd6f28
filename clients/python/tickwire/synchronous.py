"""The client that waits."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .answers import FAILURES, Value, given, read, wait_before_repeating
from .blocking_socket import BlockingSocket
from .calls import Calls
from .downloads import Download
from .errors import ApiError, Json
from .pages import Place, Route
from .session import (
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
from .walks import History, Walk

C = TypeVar("C")


class Client(Calls[Walk[Signal], Walk[NewsItem], Walk[ArchiveFile], History]):
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
        self._http = httpx.Client(**self._options())

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **parameters: Value) -> Json:
        for attempt in count():
            try:
                return read(self._http.get(path, params=given(parameters)))
            except (ApiError, httpx.TransportError) as failure:
                wait_s = wait_before_repeating(self._address, failure, attempt, self.retries)
            time.sleep(wait_s)
        raise AssertionError("unreachable")

    def walk(self, route: Route) -> Walk[Any]:
        return Walk(self, route)

    def _history(self, route: Route) -> History:
        return History(self, route)

    def page(self, place: Place[C]) -> C:
        while True:
            try:
                return place.take(self._http.get(place.path, params=place.query(), headers=place.headers))
            except FAILURES as failure:
                wait_s = place.wait_after(failure)
            time.sleep(wait_s)

    def download(self, path: str, to: str | Path) -> Path:
        """Downloads a file of the archive to a file or into a folder. Continues where an earlier attempt
        stopped; the file appears once its SHA-256 matches the one that the service names."""
        download = Download(path, to, self._address, self.retries, self.walk_retries)
        while True:
            try:
                if (file := self._download(download)) is not None:
                    return file
                continue
            except FAILURES as failure:
                wait_s = download.wait_after(failure)
            time.sleep(wait_s)

    def _download(self, download: Download) -> Path | None:
        with self._http.stream("GET", download.path, headers=download.headers()) as answer:
            if not answer.is_success:
                answer.read()
            write = download.begin(answer)
            if write is None:
                return None
            for chunk in answer.iter_raw():
                write(chunk)
        return download.finish()

    def watch(
        self, *symbols: str, on_missed: OnMissed = warn, on_notice: OnNotice = log_notice
    ) -> Generator[PriceTick, None, None]:
        """Prices as they happen."""
        return self._follow(Session("/ws/market", self.api_key, symbols, ["snapshot"], on_missed, on_notice))

    def order_flow(
        self, *symbols: str, on_missed: OnMissed = warn, on_notice: OnNotice = log_notice
    ) -> Generator[OrderFlowTick | AbsorptionSignal, None, None]:
        """The volume bought and sold with each tick, and absorption; without symbols, of all instruments."""
        return self._follow(Session("/ws/orderflow", self.api_key, symbols, (), on_missed, on_notice))

    def follow_candles(
        self,
        *symbols: str,
        timeframes: Sequence[str] = ("1m",),
        forming: bool = False,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> Generator[CandleUpdate, None, None]:
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
    ) -> Generator[NewSignal | SignalClosed, None, None]:
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
    ) -> Generator[PublishedNews, None, None]:
        """News items when they enter the feed, of all instruments and categories unless some are named. With
        `since`, first those after the item with that id."""
        return self._follow(NewsSession(self.api_key, symbols, categories, since, on_missed, on_notice))

    def _follow(self, session: Session) -> Generator[Any, None, None]:
        while True:
            try:
                with BlockingSocket(address(self.url, session)) as socket:
                    socket.send(session.subscribe())
                    while True:
                        frame = session.hear(socket.recv(SILENCE_S))
                        if frame is not None:
                            yield frame
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as failure:
                wait_s = session.wait_after_end(failure)
            time.sleep(wait_s)
