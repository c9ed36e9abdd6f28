"""Who comes over a proxy: requests and streams, from an address of loopback."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.patience import PATIENCE_S

from .installation import HOST, SYMBOL, Pair
from .proxies import Proxy

T = TypeVar("T")
# Notices of an engine that was not heard for a moment.
OF_A_BUSY_MACHINE = ("stale", "live")


class LoopThread:
    """A loop for all streams. The client with threads loses what it sends over TLS now and then, as two of
    them use the same encryption at once."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Stream:
    """A socket that is subscribed to a symbol."""

    def __init__(self, loop: LoopThread, connection: ClientConnection) -> None:
        self._loop, self._connection = loop, connection

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._connection.close())

    @property
    def close_code(self) -> int | None:
        return self._connection.close_code

    def hear(self, within_s: float = PATIENCE_S) -> Any:
        """The next frame; TimeoutError if none comes."""
        return self._loop.run(asyncio.wait_for(self._next(), within_s))

    async def _next(self) -> Any:
        while (message := json.loads(await self._connection.recv())).get("code") in OF_A_BUSY_MACHINE:
            pass
        return message


class Visitor:
    def __init__(self, proxy: Proxy, loop: LoopThread, address: str = "127.0.0.1") -> None:
        self._proxy, self._loop, self._address = proxy, loop, address
        self._tls = ssl.create_default_context(cafile=str(proxy.certificate))
        transport = httpx.HTTPTransport(verify=self._tls, local_address=address)
        self.client = httpx.Client(transport=transport, timeout=PATIENCE_S)

    def ask(self, path: str, method: str = "GET", *, plain: bool = False, **more: Any) -> httpx.Response:
        headers = {"Host": HOST} | more.pop("headers", {})
        scheme, port = ("http", self._proxy.http) if plain else ("https", self._proxy.https)
        url, extensions = f"{scheme}://127.0.0.1:{port}{path}", {"sni_hostname": HOST}
        return self.client.request(method, url, headers=headers, extensions=extensions, **more)

    def is_hung_up(self) -> bool:
        """Whether a new connection of this address ends before its handshake. On the loop: a socket of `ssl`
        that is hung up so early is closed by nobody."""
        try:
            self._loop.run(self._shake_hands())
        except (ConnectionError, ssl.SSLError):
            return True
        return False

    async def _shake_hands(self) -> None:
        port, own = self._proxy.https, (self._address, 0)
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=own, ssl=self._tls, server_hostname=HOST
        )
        writer.close()

    def stream(self, path: str, key: str, symbol: str) -> Stream:
        stream = Stream(self._loop, self._loop.run(self._connect(path, key, symbol)))
        answer = stream.hear()
        assert answer["type"] == "subscribed", answer
        return stream

    async def _connect(self, path: str, key: str, symbol: str) -> ClientConnection:
        connection = await connect(
            f"wss://{HOST}{path}",
            host="127.0.0.1",
            port=self._proxy.https,
            local_addr=(self._address, 0),
            ssl=self._tls,
            server_hostname=HOST,
            ping_interval=None,
            open_timeout=PATIENCE_S,
            close_timeout=1,
        )
        await connection.send(json.dumps({"action": "subscribe", "symbols": [symbol], "api_key": key}))
        return connection

    def push(self, ingest_key: str, bid: float, symbol: str = SYMBOL) -> httpx.Response:
        tick = {"symbol": symbol, "bid": bid, "ask": bid + 1}
        return self.ask("/ingest/ticks", "POST", json=tick, headers={"X-Ingest-Key": ingest_key})


class Load:
    """Keeps asking and pushing on connections that are kept alive, until it is left."""

    def __init__(self, visitors: tuple[Visitor, Visitor], pair: Pair) -> None:
        self._asking, self._pushing = visitors
        self._pair = pair
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
        headers = {"X-API-Key": self._pair.key}
        while not self._is_over.wait(0.02):
            self._note("GET", lambda: self._asking.ask(f"/api/market/{SYMBOL}/quote", headers=headers))

    def _push(self) -> None:
        while not self._is_over.wait(0.05):
            self._note("POST", lambda: self._pushing.push(self._pair.ingest_key, 60_000.0))

    def _note(self, method: str, act: Any) -> None:
        try:
            self.seen[f"{method} {act().status_code}"] += 1
        except httpx.TransportError as error:
            self.seen[f"{method} {type(error).__name__}"] += 1
