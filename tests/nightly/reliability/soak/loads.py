"""What goes on beside each other while the service is watched: a thread each, until it is told to end."""

from __future__ import annotations

import itertools
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

import httpx

from tests.reliability.clients.measures import percentile
from tests.reliability.services.stream_services import StreamService
from tests.serving.websocket.wires import TEXT, handshake, masked

REASON = re.compile(r'class="errorlist[^>]*>(.*?)</ul>', re.DOTALL)


class Load(threading.Thread):
    """Does one act after the other at an even rate; counts those that went well and those that did not."""

    title, a_second = "", 1.0

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._has_ended = threading.Event()
        self.done = self.failed = 0
        self.took_ms: list[float] = []
        self.complaint = ""

    def act(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        next_at = time.monotonic()
        while not self._has_ended.wait(max(0.0, next_at - time.monotonic())):
            # What was missed is not made up for: a service that stalls is not flooded afterwards.
            next_at = max(next_at + 1 / self.a_second, time.monotonic() - 1)
            began_at = time.perf_counter()
            try:
                self.act()
                self.done += 1
            except Exception as error:  # noqa: BLE001 - a soak goes on, and says what failed
                self.failed += 1
                self.complaint = f"{type(error).__name__}: {error}"[:200]
            self.took_ms.append((time.perf_counter() - began_at) * 1000)

    def stop(self) -> None:
        self._has_ended.set()
        self.join()

    def take(self) -> dict[str, float]:
        """Since it was last asked."""
        took, self.took_ms = self.took_ms, []
        figures: dict[str, float] = {f"acts: {self.title}": len(took)}
        return figures | ({f"p99 of {self.title}": percentile(took, 0.99)} if took else {})


class Ticks(Load):
    title, a_second = "ticks", 10.0

    def __init__(self, service: StreamService) -> None:
        super().__init__()
        self._service, self._symbols = service, itertools.cycle(service.symbols)

    def act(self) -> None:
        ticks = self._service.make_ticks([next(self._symbols) for _ in range(2)])
        assert self._service.push(ticks), "refused"


class Rest(Load):
    title, a_second = "REST requests", 20.0

    def __init__(self, urls: Sequence[str], key: str, symbols: Sequence[str]) -> None:
        super().__init__()
        paths = ["/api/symbols", "/api/signals?status=all", "/api/news", "/api/session", "/api/limits"]
        paths += [f"/api/market/{symbol}/quote" for symbol in symbols]
        paths += [f"/api/market/{symbol}?timeframe=1m&bars=500" for symbol in symbols]
        self._asked = itertools.cycle([url + path for path in paths for url in urls])
        self._client = httpx.Client(headers={"X-API-Key": key}, timeout=30)

    def act(self) -> None:
        answer = self._client.get(next(self._asked))
        assert answer.status_code == 200, f"{answer.status_code} {answer.url}"


class Churn(Load):
    """Clients that come and go as they like: a fifth in the middle of their subscribe, some by a reset."""

    title, a_second = "streams opened and closed", 10.0

    def __init__(self, ports: Sequence[int], key: str, symbols: Sequence[str]) -> None:
        super().__init__()
        self._ports, self._numbers = ports, itertools.count()
        message = {"action": "subscribe", "symbols": list(symbols), "api_key": key}
        self._asked = masked(TEXT, json.dumps(message).encode())

    def act(self) -> None:
        number = next(self._numbers)
        with socket.create_connection(("127.0.0.1", self._ports[number % len(self._ports)]), 30) as made:
            if number % 3 == 0:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            path = ("/ws/market", "/ws/orderflow", "/ws/signals")[number // 5 % 3]
            made.sendall(handshake(path=path))
            hear(made, b"\r\n\r\n")
            half = len(self._asked) // 2 if number % 5 == 0 else len(self._asked)
            made.sendall(self._asked[:half])
            if number % 5:
                hear(made, b'"type":"')


def hear(made: socket.socket, what: bytes) -> None:
    heard = b""
    while what not in heard:
        part = made.recv(4096)
        assert part, f"closed after {heard[-100:]!r}"
        heard += part


class Pages(Load):
    """A person with a browser, logged in."""

    title, a_second = "admin pages", 1.0
    paths: tuple[str, ...] = (
        "/admin/",
        "/admin/accounts/account/",
        "/admin/signals_feed/signal/",
        "/admin/instruments/instrument/",
        "/admin/news/newsitem/",
        "/admin/market/candle/",
        "/status",
    )

    def __init__(self, url: str, session: str) -> None:
        super().__init__()
        self._client = httpx.Client(base_url=url, cookies={"sessionid": session}, timeout=60)
        self._turn = itertools.cycle(self.paths)

    def act(self) -> None:
        answer = self._client.get(next(self._turn))
        assert answer.status_code in (200, 404), f"{answer.status_code} {answer.url}"
        assert "/login" not in answer.headers.get("Location", ""), "logged out"


class Publishing(Pages):
    """Signals with near stops and targets, so that the market closes them again."""

    title, a_second = "signals published", 0.5

    def __init__(self, url: str, session: str, service: StreamService) -> None:
        super().__init__(url, session)
        self._service, self._chosen = service, random.Random(20261121)  # noqa: S311
        self._secret = service.make_key()

    def act(self) -> None:
        symbol = self._chosen.choice(self._service.symbols)
        quote = self._service.servers[0].ask(f"/api/market/{symbol}/quote", self._secret).json()
        page = self._client.get("/settings/signals").text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert found, "no form"
        terms = {
            "symbol": symbol,
            "direction": "buy",
            # Worse than it could be, as the price moves on while the form is filled in.
            "entry": f"{quote['ask'] + 0.0015:.5f}",
            "stop_loss": f"{quote['ask'] - 0.002:.5f}",
            "take_profit": f"{quote['ask'] + 0.002:.5f}",
            "token": str(uuid4()),
            "csrfmiddlewaretoken": found[1],
        }
        answer = self._client.post("/settings/signals", data=terms)
        assert answer.status_code == 302, f"{answer.status_code}: {' '.join(REASON.findall(answer.text))}"


class BreakingSource(Load):
    """A source that pushes over a socket, and is torn in the middle of a message, or half closed."""

    title, a_second = "sources interrupted", 0.5

    def __init__(self, port: int, secret: str, symbol: str) -> None:
        super().__init__()
        self._port, self._secret, self._symbol = port, secret, symbol
        self._numbers = itertools.count()

    def act(self) -> None:
        number = next(self._numbers)
        tick = {"symbol": self._symbol, "bid": 1 + number % 50 / 1e5, "ask": 1.0002 + number % 50 / 1e5}
        text = masked(TEXT, json.dumps({"ticks": [tick]}).encode())
        with socket.create_connection(("127.0.0.1", self._port), 30) as made:
            made.sendall(handshake(f"X-Ingest-Key: {self._secret}", path="/ws/ingest"))
            hear(made, b"authenticated")
            made.sendall(text)
            hear(made, b"result")
            made.sendall((text[:7], b"\x81\xffnonsense", text)[number % 3])
            with suppress(OSError):
                made.shutdown(socket.SHUT_WR)
