"""The client that waits."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .answers import FAILURES, Value, read, wait_before_repeating
from .blocking_socket import BlockingSocket
from .calls import Calls, as_request
from .downloads import Download
from .errors import ApiError, Json, TickwireError
from .missed import Hole, OnMissed, log_unfilled, warn
from .pacing import PacedClient
from .pages import Place, Route
from .session import SILENCE_S, OnNotice, Session, address, log_notice
from .state import State
from .types import ArchiveFile, NewSignal, NewsItem, Signal, SignalClosed, TickItem
from .walks import History, Walk

C = TypeVar("C")


class Client(Calls[Walk[Signal], Walk[NewsItem], Walk[ArchiveFile], Walk[TickItem], History]):
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
        self._http = PacedClient(**self._options())

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(
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
                return read(self._http.get(where, params=asked))
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

    # Written out: mypy takes the two frames for one where it infers them, as with the other streams.
    def follow_signals(
        self,
        *symbols: str,
        closures: bool = True,
        since: str | None = None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
    ) -> Generator[NewSignal | SignalClosed, None, None]:
        """Signals when they are published and, with a `type`, when they end. With `since`, first those after
        that one."""
        manner = self._manner(on_missed, on_notice, state)
        return self.follow(self.signal_session(symbols, since, closures=closures, manner=manner))

    def follow(self, session: Session) -> Generator[Any, None, None]:
        with closing(self._texts(session)) as texts:
            for text in texts:
                for heard in session.hear(text):
                    if isinstance(heard, Hole):
                        yield from self._fill(session, heard)
                    else:
                        session.deliver(heard)
                        yield heard

    def _texts(self, session: Session) -> Generator[str | bytes, None, None]:
        while True:
            try:
                with BlockingSocket(address(self.url, session)) as socket:
                    socket.send(session.subscribe())
                    while True:
                        yield socket.recv(SILENCE_S)
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as failure:
                wait_s = session.wait_after_end(failure)
                if wait_s is None:
                    raise self._not_opened(failure) from failure
            time.sleep(wait_s)

    def _fill(self, session: Session, hole: Hole) -> Generator[Any, None, None]:
        """The frames that are missing, and then the report."""
        fill = session.fill_of(hole)
        if fill is not None:
            try:
                while not fill.is_done:
                    if fill.wait_s:
                        time.sleep(fill.wait_s)
                    for frame in fill.take(self.get(fill.path, **fill.parameters())):
                        session.deliver(frame, fill.epoch)
                        yield frame
            except (TickwireError, httpx.DecodingError) as failure:
                log_unfilled(hole, failure)
        session.report(hole, hole.missed if fill is None else fill.missed)
