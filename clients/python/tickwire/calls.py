"""The paths of REST: how a call becomes a request. It does no I/O."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote as quoted

import httpx

from .answers import Value, given
from .errors import Address, ApiError, Json, ServiceUnreachable
from .methods import Asked, Call, asked
from .pages import LONGEST_PAGE, Form, Moment, Place, Route, as_parameter
from .streams import Streams

if TYPE_CHECKING:
    from .types import (
        Analysis,
        Calibration,
        InstrumentList,
        Ledger,
        Limits,
        Market,
        NewsList,
        OrderFlow,
        Proof,
        Publisher,
        Quote,
        QuoteList,
        Session,
        Signal,
        SignalList,
    )

S = TypeVar("S")
N = TypeVar("N")
A = TypeVar("A")
K = TypeVar("K")
H = TypeVar("H")
C = TypeVar("C")

LOCAL = "http://127.0.0.1:8000"
LONGEST_LIST = 500
# What the service shows of a client, of its requests and of its streams.
USER_AGENT = "tickwire-python/0.2.0.dev0"
KEY, FORMER_KEY, URL = "TICKWIRE_KEY", "TICKWIRE_API_KEY", "TICKWIRE_URL"
DEFAULT_USED = (
    f"This is the default address: to use another service, set {URL}, or pass url (--url in a command)."
)
FROM_ENVIRONMENT = f"The address comes from {URL}: check it, and whether the service is running."
FROM_CALLER = "Check the address, and whether the service is running."
# Since when anything can have been kept.
EPOCH = 0
IN_PATH = re.compile(r"\{(\w+)\}")


class Calls(Streams, ABC, Generic[S, N, A, K, H]):
    """Walks over signals, over news, over files of the archive, over ticks, and over candles."""

    def __init__(
        self, api_key: str | None, url: str | None, timeout: float, retries: int, walk_retries: int
    ) -> None:
        self.api_key = api_key or os.environ.get(KEY) or os.environ.get(FORMER_KEY, "")
        if not self.api_key:
            raise ValueError(f"An API key is needed: set {KEY}, or pass api_key (--key in a command).")
        self.url = checked(url or os.environ.get(URL) or LOCAL)
        advice = FROM_CALLER if url else FROM_ENVIRONMENT if os.environ.get(URL) else DEFAULT_USED
        self._address = Address(self.url, advice, timeout)
        self.timeout, self.retries, self.walk_retries = timeout, retries, walk_retries

    @abstractmethod
    def get(
        self,
        path: str,
        in_path: Mapping[str, str] | None = None,
        query: Mapping[str, Value] | None = None,
        /,
        **parameters: Value,
    ) -> Any:
        """Any path of the reference: `get("/api/market/{symbol}/quote", {"symbol": "BTCUSD"})`."""

    @abstractmethod
    def walk(self, route: Route) -> Any:
        """All pages of a path."""

    @abstractmethod
    def _history(self, route: Route) -> H: ...

    @Call
    def symbols(self, *, expand: Iterable[str] = ()) -> Asked[InstrumentList]:
        return asked("symbols", expand=_listed(expand))

    @Call
    def quote(self, symbol: str) -> Asked[Quote]:
        return asked(f"market/{_symbol(symbol)}/quote")

    @Call
    def market(
        self, symbol: str, *, timeframe: str = "1h", bars: int = 100, closed_only: bool = False
    ) -> Asked[Market]:
        closed = "true" if closed_only else None
        return asked(f"market/{_symbol(symbol)}", timeframe=timeframe, bars=bars, closed_only=closed)

    @Call
    def quotes(self, symbols: Iterable[str] | None = None) -> Asked[QuoteList]:
        """Quotes of several instruments at once; without a list, of all. An empty list is an error."""
        named = None if symbols is None else _listed(symbols)
        if symbols is not None and named is None:
            raise ValueError("The list of symbols is empty: name one, or call quotes() for all instruments.")
        return asked("quotes", symbols=named)

    def history(
        self,
        symbol: str,
        timeframe: str = "1m",
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        limit: int = LONGEST_PAGE,
        cursor: str | None = None,
    ) -> H:
        """Every stored closed candle at or after `start` and before `end`. `limit` is the number of candles
        in a page; `cursor` continues after a page of the same walk."""
        chosen: dict[str, Value] = {"timeframe": timeframe, **_span(start, end), "limit": limit}
        return self._history(Route(f"market/{_symbol(symbol)}/history", "ohlcv", chosen, cursor))

    def ticks(
        self,
        symbol: str,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        limit: int = LONGEST_PAGE,
        cursor: str | None = None,
    ) -> K:
        """Every tick that the service keeps at or after `start` and before `end`. `limit` is the number of
        ticks in a page; `cursor` continues after a page of the same walk."""
        chosen: dict[str, Value] = {**_span(start, end), "limit": limit}
        ticks: K = self.walk(Route(f"market/{_symbol(symbol)}/ticks", "items", chosen, cursor))
        return ticks

    @Call
    def order_flow_buckets(
        self, symbol: str, *, start: Moment | None = None, end: Moment | None = None, limit: int = 100
    ) -> Asked[OrderFlow]:
        """The volume bought and sold in each minute; without `start`, in the newest ones."""
        return asked(f"orderflow/{_symbol(symbol)}", **_span(start, end), limit=limit)

    @Call
    def signals(
        self,
        *,
        status: str = "active",
        symbol: str | None = None,
        user: str | None = None,
        limit: int = 50,
        start: Moment | None = None,
        end: Moment | None = None,
        cursor: str | None = None,
    ) -> Asked[SignalList]:
        """The newest signals, by default only active ones, unlike `all_signals`. With `start`, `end` or
        `cursor`, a page, whose `next` is the cursor of the following one."""
        place = {**_span(start, end), "cursor": cursor}
        return asked("signals", status=status, symbol=symbol, user=user, limit=limit, **place)

    def all_signals(
        self,
        *,
        status: str = "all",
        symbol: str | None = None,
        user: str | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
    ) -> S:
        """Page after page, newest first; by default including closed ones, unlike `signals`."""
        chosen: dict[str, Value] = {"status": status, "symbol": symbol, "user": user}
        signals: S = self.walk(Route("signals", "items", chosen | _ranged(start, end)))
        return signals

    @Call
    def signal(self, signal_id: str) -> Asked[Signal]:
        return asked(f"signals/{_part(signal_id)}")

    @Call
    def proof(self, signal_id: str) -> Asked[Proof]:
        return asked(f"signals/{_part(signal_id)}/proof")

    @Call
    def ledger(self, /, **parameters: Value) -> Asked[Ledger]:
        return asked("signals/ledger", **parameters)

    @Call
    def publisher(self, user: str) -> Asked[Publisher]:
        return asked(f"publishers/{_part(user)}")

    @Call
    def news(
        self,
        *,
        category: Iterable[str] = (),
        limit: int = 20,
        expand: Iterable[str] = (),
        start: Moment | None = None,
        end: Moment | None = None,
        cursor: str | None = None,
    ) -> Asked[NewsList]:
        """The newest items. With `start`, `end` or `cursor`, a page, whose `next` is the cursor of the
        following one."""
        place = {**_span(start, end), "cursor": cursor}
        return asked("news", limit=limit, **_chosen(category, expand), **place)

    def all_news(
        self,
        *,
        category: Iterable[str] = (),
        expand: Iterable[str] = (),
        start: Moment | None = None,
        end: Moment | None = None,
    ) -> N:
        """Page after page, newest first."""
        news: N = self.walk(Route("news", "items", _chosen(category, expand) | _ranged(start, end)))
        return news

    def archive(
        self,
        *,
        kind: str | None = None,
        symbol: str | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
    ) -> A:
        """The files of the archive, by day; `download` takes the `path` of one."""
        chosen: dict[str, Value] = {"kind": kind, "symbol": symbol, **_span(start, end)}
        files: A = self.walk(Route("archive", "items", chosen))
        return files

    @Call
    def calibration(self) -> Asked[Calibration]:
        return asked("news/calibration")

    @Call
    def analysis(self, symbol: str, *, model: str | None = None) -> Asked[Analysis]:
        return asked(f"analysis/{_symbol(symbol)}", model=model)

    @Call
    def session(self) -> Asked[Session]:
        return asked("session")

    @Call
    def limits(self) -> Asked[Limits]:
        return asked("limits")

    def place(self, route: Route, form: Form[C]) -> Place[C]:
        return Place(route, form, self._address, self.retries, self.walk_retries)

    def _not_opened(self, failure: Exception) -> ServiceUnreachable:
        """Of a stream that never was."""
        return ServiceUnreachable(self._address, httpx.ConnectError(str(failure) or type(failure).__name__))

    def _options(self) -> Json:
        headers = {"X-API-Key": self.api_key, "User-Agent": USER_AGENT}
        return {"base_url": f"{self.url}/api/", "headers": headers, "timeout": self.timeout}


def as_request(
    path: str,
    in_path: Mapping[str, str] | None,
    query: Mapping[str, Value] | None,
    parameters: Mapping[str, Value],
) -> tuple[str, dict[str, str | int]]:
    """The part of the address after /api/, and the query."""
    values = in_path or {}
    for name in IN_PATH.findall(path):
        if not values.get(name):
            raise ValueError(f"{path} needs a value: pass {{{name!r}: …}} after the path.")
    filled = IN_PATH.sub(lambda found: _part(values[found[1]]), path)
    return filled.removeprefix("/api/"), given({**(query or {}), **parameters})


def checked(url: str) -> str:
    try:
        is_address = httpx.URL(url).scheme in ("http", "https")
    except httpx.InvalidURL:
        is_address = False
    if not is_address:
        raise ValueError(f"{url} is not the address of a service: write it like {LOCAL}.")
    return url.rstrip("/")


def _chosen(category: Iterable[str], expand: Iterable[str]) -> dict[str, Value]:
    return {"category": _listed(category), "expand": _listed(expand)}


def _listed(names: Iterable[str]) -> str | None:
    """A text is one name, or several separated by commas, and never its letters."""
    return (names if isinstance(names, str) else ",".join(names)) or None


def _span(start: Moment | None, end: Moment | None) -> dict[str, Value]:
    return {"start": as_parameter(start, "start"), "end": as_parameter(end, "end")}


def _ranged(start: Moment | None, end: Moment | None) -> dict[str, Value]:
    """Lists have pages only if a range is requested."""
    return {**_span(EPOCH if start is None and end is None else start, end), "limit": LONGEST_LIST}


def _symbol(text: str) -> str:
    """A slash or dots would lead to another path, and the service would not speak of a symbol there."""
    if not text:
        raise ValueError("The symbol is empty: name one, such as EURUSD.")
    if "/" in text or text in (".", ".."):
        message = f"There is no such symbol: {text}. Symbols are written without a slash, such as EURUSD."
        raise ApiError(404, {"code": "symbol_not_found", "message": message, "field": "symbol"})
    return _part(text)


def _part(text: str) -> str:
    return quoted(text, safe="")
