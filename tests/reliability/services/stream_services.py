"""The streams of real processes: in one with the engine inside, or over Redis on several with it apart."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from market.push.keys import issue_ingest_key
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.writer import Writer

from .engine_processes import engines
from .processes import Installation, Process, http

Tick = dict[str, Any]


class StreamService:
    """Web processes; ticks go in at the first."""

    def __init__(self, installation: Installation, symbols: Sequence[str]) -> None:
        self.installation, self.symbols = installation, symbols
        self.servers: list[Process] = []
        self._numbers = itertools.count(1)
        with installation.orm():
            for symbol in symbols:
                make_instrument(symbol)
            secret = issue_ingest_key("desk", by="test")[1]
        self.headers = {"X-Ingest-Key": secret}

    def make_key(self, **limits: int) -> str:
        """Of an account of its own."""
        return self.installation.make_key(f"tier{next(self._numbers)}", **{"streams": 100_000} | limits)

    def make_ticks(self, symbols: Sequence[str]) -> list[Tick]:
        """Each of another price."""
        now_ms = time.time_ns() // 1_000_000
        bids = [round(1 + next(self._numbers) / 100_000, 5) for _ in symbols]
        return [
            {"symbol": symbol, "bid": bid, "ask": round(bid + 0.0002, 5), "time": now_ms}
            for symbol, bid in zip(symbols, bids, strict=True)
        ]

    def push(self, ticks: Sequence[Tick], within_s: float = PATIENCE_S) -> bool:
        """Whether all were taken."""
        url = f"{self.servers[0].url}/ingest/ticks"
        answer = http.post(url, json={"ticks": list(ticks)}, headers=self.headers, timeout=within_s)
        return bool(answer.json().get("accepted") == len(ticks))

    def tick(self, symbol: str, count: int = 1) -> list[Tick]:
        ticks = self.make_ticks([symbol] * count)
        assert self.push(ticks)
        return ticks

    def open_streams(self, key: str) -> int:
        """Over all accounts and processes, as the first says it."""
        return int(self.servers[0].ask("/api/session", key).json()["clients_connected"])


@contextmanager
def streaming(
    installation: Installation, processes: int = 1, symbols: Sequence[str] = ("STREAMED",), **changes: str
) -> Iterator[StreamService]:
    """Its symbols have had one tick each, and every process knows it: one that was subscribed to before would
    tell of a new numbering."""
    service = StreamService(installation, symbols)
    with ExitStack() as stack:
        if installation.redis_url:
            stack.enter_context(engines(installation, 1))
        service.servers += stack.enter_context(installation.serve(processes, **changes))
        wait_until(lambda: service.push(service.make_ticks(symbols)))
        quote, key = f"/api/market/{symbols[-1]}/quote", service.make_key()
        for server in service.servers:
            wait_until(lambda: server.ask(quote, key).status_code == 200)  # noqa: B023
        yield service


TURN_S = 0.05


class Flow(Writer):
    """Ticks at an even rate, from a thread of their own."""

    def __init__(self, service: StreamService, a_second: int) -> None:
        self._service, self._number = service, int(a_second * TURN_S)
        self._symbols = itertools.cycle(service.symbols)
        self._next_at = time.monotonic()
        self.sent = 0

    def turn(self) -> None:
        self._next_at += TURN_S
        symbols = list(itertools.islice(self._symbols, self._number))
        if self._service.push(self._service.make_ticks(symbols)):
            self.sent += len(symbols)
        self.has_ended.wait(max(0.0, self._next_at - time.monotonic()))
