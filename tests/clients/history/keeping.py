"""A service that keeps candles and files, as the contract describes it, and fails when a test says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pyarrow
from tickwire import Candle

from tests.patience import PATIENCE_S

ARROW = "application/vnd.apache.arrow.stream"
NUMBERS = ("open", "high", "low", "close", "volume")
MINUTE_MS = 60_000
START_MS = 1_763_600_400_000


class Mishap(NamedTuple):
    """Of one request: refused, or its answer cut after a share of it."""

    status: int = 200
    code: str = ""
    retry_after: int | None = None
    share: float = 1.0


CUT_SHORT, HUNG_UP = Mishap(share=0.6), Mishap(share=0.0)
BUSY = Mishap(429, "rate_limit_exceeded", retry_after=1)
IN_FRONT = Mishap(502)


class Request(NamedTuple):
    path: str
    query: dict[str, str]
    headers: dict[str, str]


class Answer(NamedTuple):
    body: bytes
    headers: dict[str, str]
    status: int = 200


def make_candles(count: int, start_ms: int = START_MS) -> list[Candle]:
    return [
        Candle(
            time=iso(start_ms + number * MINUTE_MS),
            open=round(1.08 + number * 1e-5, 5),
            high=round(1.081 + number * 1e-5, 5),
            low=round(1.079 + number * 1e-5, 5),
            close=round(1.0805 + number * 1e-5, 5),
            volume=float(number % 7),
        )
        for number in range(count)
    ]


def iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


class Keeper:
    """Of the requests in `mishaps`, counted from 0, each fails in its way."""

    def __init__(self, candles: Sequence[Candle] = (), mishaps: dict[int, Mishap] | None = None) -> None:
        self.candles, self.mishaps = list(candles), mishaps or {}
        self.series: dict[str, list[Candle]] = {}
        """Those of other instruments and timeframes than EURUSD 1m, such as USDJPY/1m."""
        self.files: dict[str, bytes] = {}
        self.asked: list[Request] = []
        self.writes_arrow = True
        self.url = ""

    def answer(self, request: Request) -> Answer:
        what = request.path.removeprefix("/api/")
        symbol = what.removeprefix("market/").removesuffix("/history").upper()
        name = f"{symbol}/{request.query.get('timeframe')}"
        if symbol == "EURUSD" or name in self.series:
            return self._history(request, self.series.get(name, self.candles))
        if what == "archive":
            return in_json({"items": [{"path": path} for path in self.files], "count": 1, "next": None})
        return self._file(request, what.removeprefix("archive/"))

    def _history(self, request: Request, candles: Sequence[Candle]) -> Answer:
        query = dict(request.query)
        limit, cursor = int(query.pop("limit", "1000")), query.pop("cursor", None)
        asked = sha256(json.dumps(query, sort_keys=True).encode()).hexdigest()[:8]
        begin, _, of = (cursor or f"0.{asked}").partition(".")
        if of != asked:
            return refusal(400, "invalid_cursor")
        kept = [candle for candle in candles if is_within(candle, query.get("start"), query.get("end"))]
        end = int(begin) + limit
        following = f"{end}.{asked}" if end < len(kept) else None
        return self._written(kept[int(begin) : end], following, request.headers.get("accept", "*/*"))

    def _written(self, candles: list[Candle], following: str | None, accept: str) -> Answer:
        headers = {} if following is None else {"X-Next-Cursor": following}
        if accept.startswith(ARROW) and self.writes_arrow:
            return Answer(as_arrow(candles), headers | {"Content-Type": ARROW})
        if accept == "text/csv":
            return Answer(as_csv(candles).encode(), headers | {"Content-Type": "text/csv; charset=utf-8"})
        body = {"symbol": "EURUSD", "timeframe": "1m", "ohlcv": candles, "count": len(candles)}
        return in_json(body | {"next": following})

    def _file(self, request: Request, path: str) -> Answer:
        if path not in self.files:
            return refusal(404, "not_found")
        content = self.files[path]
        etag = f'"{sha256(content).hexdigest()}"'
        asked = request.headers.get("range")
        if asked is None or request.headers.get("if-range", etag) != etag:
            return Answer(content, {"ETag": etag})
        begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content):
            return refusal(416, "range_not_satisfiable")
        place = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
        return Answer(content[begin:], {"ETag": etag} | place, 206)


def is_within(candle: Candle, start: str | None, end: str | None) -> bool:
    at = moment(candle["time"])
    return (start is None or at >= moment(start)) and (end is None or at < moment(end))


def moment(text: str) -> datetime:
    return datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdigit() else datetime.fromisoformat(text)


def as_csv(candles: Sequence[Candle]) -> str:
    rows = (",".join([candle["time"], *(f"{candle[name]}" for name in NUMBERS)]) for candle in candles)  # type: ignore[literal-required]
    return "\n".join(["time,open,high,low,close,volume", *rows, ""])


def as_arrow(candles: Sequence[Candle]) -> bytes:
    times = [round(moment(candle["time"]).timestamp() * 1000) for candle in candles]
    columns = {"time": pyarrow.array(times, pyarrow.timestamp("ms", "UTC"))}
    for name in NUMBERS:
        columns[name] = pyarrow.array([candle[name] for candle in candles], pyarrow.float64())  # type: ignore[literal-required]
    table, sink = pyarrow.table(columns), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=300)
    return bytes(sink.getvalue())


def in_json(body: object, status: int = 200) -> Answer:
    return Answer(json.dumps(body).encode(), {"Content-Type": "application/json"}, status)


def refusal(status: int, code: str) -> Answer:
    return in_json({"error": {"code": code, "status": status, "message": f"{code}."}}, status)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    keeper: Keeper

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(parts.path, dict(parse_qsl(parts.query)), headers)
        mishap = self.keeper.mishaps.get(len(self.keeper.asked), Mishap())
        self.keeper.asked.append(request)
        if mishap.status == 200:
            self._send(self.keeper.answer(request), mishap.share)
        elif mishap.code:
            waits = {} if mishap.retry_after is None else {"Retry-After": str(mishap.retry_after)}
            refused = refusal(mishap.status, mishap.code)
            self._send(refused._replace(headers=refused.headers | waits))
        else:
            self._send(Answer(b"<h1>Bad gateway</h1>", {"Content-Type": "text/html"}, mishap.status))

    def _send(self, answer: Answer, share: float = 1.0) -> None:
        if share:
            self.send_response(answer.status)
            for name, value in (answer.headers | {"Content-Length": str(len(answer.body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body[: int(len(answer.body) * share)])
        self.close_connection = share < 1

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at what was asked."""


@contextmanager
def keeping(keeper: Keeper) -> Iterator[Keeper]:
    handler = type("OfOneKeeper", (Handler,), {"keeper": keeper})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        keeper.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield keeper
        server.shutdown()
        thread.join(PATIENCE_S)
