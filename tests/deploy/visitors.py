"""Who comes over a proxy: requests and streams, from an address of loopback."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import Counter
from typing import Any

import httpx
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.patience import PATIENCE_S

from .installation import HOST, SYMBOL, Pair
from .proxies import Proxy


class Visitor:
    def __init__(self, proxy: Proxy, address: str = "127.0.0.1") -> None:
        self._proxy, self._address = proxy, address
        self._tls = ssl.create_default_context(cafile=str(proxy.certificate))
        transport = httpx.HTTPTransport(verify=self._tls, local_address=address)
        self.client = httpx.Client(transport=transport, timeout=PATIENCE_S)

    def ask(self, path: str, method: str = "GET", *, plain: bool = False, **more: Any) -> httpx.Response:
        headers = {"Host": HOST} | more.pop("headers", {})
        scheme, port = ("http", self._proxy.http) if plain else ("https", self._proxy.https)
        url, extensions = f"{scheme}://127.0.0.1:{port}{path}", {"sni_hostname": HOST}
        return self.client.request(method, url, headers=headers, extensions=extensions, **more)

    def stream(self, path: str, key: str, symbol: str) -> Connection:
        """A socket that is subscribed."""
        kernel = socket.create_connection(("127.0.0.1", self._proxy.https), source_address=(self._address, 0))
        stream = connect(
            f"wss://{HOST}{path}",
            sock=kernel,
            ssl=self._tls,
            server_hostname=HOST,
            ping_interval=None,
            open_timeout=PATIENCE_S,
            close_timeout=1,
        )
        stream.send(json.dumps({"action": "subscribe", "symbols": [symbol], "api_key": key}))
        answer = json.loads(stream.recv(PATIENCE_S))
        assert answer["type"] == "subscribed", answer
        return stream

    def push(self, ingest_key: str, bid: float, symbol: str = SYMBOL) -> httpx.Response:
        tick = {"symbol": symbol, "bid": bid, "ask": bid + 1}
        return self.ask("/ingest/ticks", "POST", json=tick, headers={"X-Ingest-Key": ingest_key})


class Load:
    """Keeps asking and pushing on connections that are kept alive, until it is left."""

    def __init__(self, proxy: Proxy, pair: Pair) -> None:
        self._proxy, self._pair = proxy, pair
        self._is_over = threading.Event()
        self.seen: Counter[str] = Counter()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._ask, self._push)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        visitor, headers = Visitor(self._proxy), {"X-API-Key": self._pair.key}
        with visitor.client:
            while not self._is_over.wait(0.02):
                self._note("GET", lambda: visitor.ask(f"/api/market/{SYMBOL}/quote", headers=headers))

    def _push(self) -> None:
        visitor, bid = Visitor(self._proxy), 60_000.0
        with visitor.client:
            while not self._is_over.wait(0.05):
                self._note("POST", lambda: visitor.push(self._pair.ingest_key, bid))

    def _note(self, method: str, act: Any) -> None:
        try:
            self.seen[f"{method} {act().status_code}"] += 1
        except httpx.TransportError as error:
            self.seen[f"{method} {type(error).__name__}"] += 1
