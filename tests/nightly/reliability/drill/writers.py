"""Those who write while something fails, and know what was acknowledged to them."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from uuid import UUID

import httpx
from django.db import Error, connection
from django.test import override_settings

from instruments.catalogue import catalogue
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.factories import make_user
from tests.reliability.clients.writer import Writer
from tests.reliability.services.engines import stored
from tests.reliability.services.processes import Installation
from tests.reliability.signals.signal_writer import act
from tests.reliability.signals.test_kill import allow

TURN_S, AGAIN_S = 0.05, 0.1
UNLIMITED = {"PUBLICATIONS_PER_MINUTE": 0, "ACTIVE_SIGNALS_PER_PUBLISHER": 0}
KNOWN = (None, "duplicate")


class TickSource(Writer):
    """Numbers its ticks, and sends what was not answered again, as docs/ingest.md says."""

    def __init__(self, ports: Sequence[int], key: str, symbols: Sequence[str], a_second: int) -> None:
        self._ports, self._headers = itertools.cycle(ports), {"X-Ingest-Key": key}
        self._symbols, self._count = itertools.cycle(symbols), max(1, int(a_second * TURN_S))
        self._numbers, self._port = itertools.count(1), next(self._ports)
        self._http = httpx.Client(timeout=10)
        self.acknowledged: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.failed_at: list[float] = []
        """When requests were sent that failed."""
        self._next_s = time.monotonic()
        self._turn = threading.Lock()

    @contextmanager
    def at_rest(self) -> Iterator[Counter[str]]:
        """All that it sent is answered, and it sends nothing. By symbol, how many were acknowledged."""
        with self._turn:
            yield self.acknowledged

    def run(self) -> None:
        with self._http:
            super().run()

    def turn(self) -> None:
        with self._turn:
            self._turn_once()
        self._next_s = max(self._next_s + TURN_S, time.monotonic())
        self.has_ended.wait(max(0.0, self._next_s - time.monotonic()))

    def _turn_once(self) -> None:
        ticks = [self._make(symbol) for symbol in itertools.islice(self._symbols, self._count)]
        while not self._send(ticks) and not self.has_ended.wait(AGAIN_S):
            self._port = next(self._ports)

    def _make(self, symbol: str) -> dict[str, object]:
        number, now_ms = next(self._numbers), time.time_ns() // 1_000_000
        bid = round(1 + number % 1_000 / 100_000, 5)
        ask = round(bid + 0.0002, 5)
        return {"symbol": symbol, "bid": bid, "ask": ask, "time": now_ms, "seq": number}

    def _send(self, ticks: list[dict[str, object]]) -> bool:
        """Whether it was answered."""
        sent_s = time.monotonic()
        url = f"http://127.0.0.1:{self._port}/ingest/ticks"
        try:
            answer = self._http.post(url, json={"ticks": ticks}, headers=self._headers)
        except httpx.TransportError:
            self.failed_at.append(sent_s)
            return False
        if answer.status_code != 200:
            self.failed_at.append(sent_s)
            return False
        codes = {tick["index"]: tick["code"] for tick in answer.json()["rejected"]}
        for index, tick in enumerate(ticks):
            code = codes.get(index)
            counter, what = (self.acknowledged, tick["symbol"]) if code in KNOWN else (self.refused, code)
            counter[str(what)] += 1
        return True

    def taken(self, installation: Installation) -> dict[str, int]:
        """How many the database says there were of each symbol that was acknowledged."""
        return {symbol: stored(installation, symbol).seq for symbol in self.acknowledged}


class SignalSource(Writer):
    """Publishes, cancels and closes signals in transactions; each has a token, so that none is doubled."""

    def __init__(self, installation: Installation, symbol: str) -> None:
        self._installation, self._symbol = installation, symbol
        self.acknowledged: list[str] = []
        self._numbers = itertools.count()
        with installation.orm():
            user = make_user("drill")
            allow(user)
        self._user = user.username

    def run(self) -> None:
        with override_settings(**UNLIMITED), self._installation.orm():
            catalogue.load_now()
            super().run()

    def turn(self) -> None:
        number = next(self._numbers)
        while not self.has_ended.wait(AGAIN_S):
            try:
                self.acknowledged.append(act(number, self._symbol, self._user, UUID(int=number + 1)))
                return
            except Error:
                with suppress(Error):
                    connection.close()

    def lost(self) -> int:
        with self._installation.orm():
            known = set(map(str, Signal.objects.values_list("pk", flat=True)))
        return len(set(self.acknowledged) - known)

    def ledger_fault(self) -> str:
        with self._installation.orm():
            return verify().fault
