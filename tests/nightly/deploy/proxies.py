"""nginx, HAProxy and Caddy with the files of deploy/, in which only what is of this machine changes, and who
comes over them: requests and streams, from an address of loopback."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.certificates import make_certificate
from tests.patience import PATIENCE_S, wait_until
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT, listens, logged

from .installation import HOST, SYMBOL, Pair

DEPLOY = ROOT / "deploy"
# Instead of a minute: longer than the service's pings are apart, and short enough to wait for.
IDLE_S = 20
# Instead of 200 connections of an address.
CONNECTIONS = 30
NGINX = """
daemon off; {user} worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  include tickwire/tickwire.conf;
}}
"""


class Proxy(NamedTuple):
    name: str
    directory: Path
    certificate: Path
    http: int
    https: int
    host: str = HOST
    idle_s: int = IDLE_S
    connections: int = CONNECTIONS

    @property
    def logs(self) -> str:
        """All that it wrote."""
        return "\n".join(path.read_text() for path in self.directory.glob("*.log"))


class Program(NamedTuple):
    """How one is started, and how its configuration is checked."""

    run: Sequence[str]
    check: Sequence[str]
    environment: Mapping[str, str] = {}


def adapted(path: Path, changes: Mapping[str, str]) -> str:
    """What is to change must be there, or the test would run something else than what is shipped."""
    text = path.read_text()
    for shipped, here in changes.items():
        assert shipped in text, f"{path.name} has no {shipped!r}"
        text = text.replace(shipped, here)
    return text


def nginx(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program, folder = require_debian("nginx", "nginx-light"), proxy.directory / "tickwire"
    folder.mkdir()
    changes = {
        "api.example.com": proxy.host,
        "127.0.0.1:8001": f"127.0.0.1:{ports[0]}",
        "127.0.0.1:8002": f"127.0.0.1:{ports[1]}",
        "listen 80": f"listen 127.0.0.1:{proxy.http}",
        "listen 443": f"listen 127.0.0.1:{proxy.https}",
        "/etc/nginx/tickwire/fullchain.pem": str(proxy.certificate),
        "/etc/nginx/tickwire/privkey.pem": str(key),
        "/var/log/nginx/": f"{proxy.directory}/",
        "limit_conn tickwire_clients 200": f"limit_conn tickwire_clients {proxy.connections}",
        "proxy_read_timeout 60s": f"proxy_read_timeout {proxy.idle_s}s",
    }
    (folder / "tickwire.conf").write_text(adapted(DEPLOY / "nginx/tickwire.conf", changes))
    shutil.copy(DEPLOY / "nginx/proxy.conf", folder)
    main = proxy.directory / "nginx.conf"
    main.write_text(NGINX.format(directory=proxy.directory, user="user root;" if os.geteuid() == 0 else ""))
    command = [program, "-p", str(proxy.directory), "-c", str(main)]
    return Program(command, [*command, "-t"])


def haproxy(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program = require_debian("haproxy")
    both = proxy.directory / "tickwire.pem"
    both.write_bytes(proxy.certificate.read_bytes() + key.read_bytes())
    changes = {
        "api.example.com": proxy.host,
        "127.0.0.1:8001": f"127.0.0.1:{ports[0]}",
        "127.0.0.1:8002": f"127.0.0.1:{ports[1]}",
        "bind :80": f"bind 127.0.0.1:{proxy.http}",
        "bind :443": f"bind 127.0.0.1:{proxy.https}",
        "/etc/haproxy/tickwire.pem": str(both),
        "log /dev/log local0": "log stdout format raw local0",
        "    user haproxy\n    group haproxy\n": "",
        "sc0_conn_cur(addresses) gt 200": f"sc0_conn_cur(addresses) gt {proxy.connections}",
        # Not each machine allows the descriptors.
        "maxconn 20000": "maxconn 2000",
        "timeout tunnel 60s": f"timeout tunnel {proxy.idle_s}s",
    }
    path = proxy.directory / "haproxy.cfg"
    path.write_text(adapted(DEPLOY / "haproxy/haproxy.cfg", changes))
    return Program([program, "-db", "-f", str(path)], [program, "-c", "-f", str(path)])


def caddy(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program, path = require_debian("caddy"), proxy.directory / "Caddyfile"
    here = f"admin off\n\tdefault_bind 127.0.0.1\n\thttp_port {proxy.http}\n\thttps_port {proxy.https}"
    changes = {
        "{\n\tservers {": f"{{\n\t{here}\n\tservers {{",
        # One of its own, instead of one that it would fetch.
        "{$TICKWIRE_HOST} {\n\timport": f"{{$TICKWIRE_HOST}} {{\n\ttls {proxy.certificate} {key}\n\timport",
    }
    path.write_text(adapted(DEPLOY / "caddy/Caddyfile", changes))
    environment = {
        "TICKWIRE_HOST": proxy.host,
        "TICKWIRE_WEB": " ".join(f"127.0.0.1:{port}" for port in ports),
        "XDG_DATA_HOME": str(proxy.directory / "data"),
        "XDG_CONFIG_HOME": str(proxy.directory / "config"),
    }
    options = ["--adapter", "caddyfile", "--config", str(path)]
    return Program([program, "run", *options], [program, "validate", *options], environment)


PROGRAMS = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}


@contextmanager
def started(name: str, directory: Path, ports: Sequence[int], **changes: Any) -> Iterator[Proxy]:
    """Its configuration was checked by itself before, as an operator would."""
    directory.mkdir()
    key, certificate = make_certificate(directory, HOST)
    proxy = Proxy(name, directory, certificate, free_port(), free_port(), **changes)
    program = PROGRAMS[name](proxy, ports, key)
    environment = os.environ | dict(program.environment)
    checked = subprocess.run(
        program.check, env=environment, cwd=directory, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    log = directory / "own.log"
    tied = shutil.which("setpriv")
    command = [*([tied, "--pdeathsig=TERM"] if tied else []), *program.run]
    with logged(command, log, environment, directory) as process:
        for port in (proxy.http, proxy.https):
            wait_until(lambda port=port: listens(process, port, log))  # type: ignore[misc]
        yield proxy


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
