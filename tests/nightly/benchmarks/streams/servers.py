"""How the product, in its two shapes, and each of its peers is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from shutil import which

import redis

from tests.nightly.benchmarks.processes import CLIENT_CORE, NOTHING, children, fill, run_module, running
from tests.programs.installation import SETTINGS
from tests.programs.services import database_url, free_port, redis_url

from . import cases
from .load import Target
from .places import HERE, LIMIT, NGINX_MODULES, NODE_MODULES

SYMBOLS = 50
Start = Callable[[], AbstractContextManager[Target]]


def module(name: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"{__package__}.{name}", *map(str, words)]


class Product:
    """Prepared once: instruments, and an account whose key opens all the sockets."""

    def __init__(self, directory: Path, symbols: int = SYMBOLS) -> None:
        self._directory = directory
        self._alone = SETTINGS | {"VAR_DIR": str(directory / "var")}
        self._key = run_module("streams.product", "prepare", symbols, **self._alone).decode()

    @contextmanager
    def together(self) -> Iterator[Target]:
        with self.alone() as target:
            yield target._replace(options={**target.options, "path": "/ws", "stream": "market"})

    @contextmanager
    def alone(self) -> Iterator[Target]:
        ports = port, tick_port = free_port(), free_port()
        command = module("product", "serve", *ports)
        with running(command, self._directory / "product.log", ports, self._alone) as process:
            yield Target(port, tick_port, (process.pid,), options(self._key))

    @contextmanager
    def over_redis(self) -> Iterator[Target]:
        """In service engine, Redis and PostgreSQL have cores of their own; here they share the client's."""
        with ExitStack() as stack:
            enter, port, tick_port = stack.enter_context, free_port(), free_port()
            # Processes keep to the core of the one that starts them.
            before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {CLIENT_CORE})
            urls = {"DATABASE_URL": enter(database_url()), "REDIS_URL": enter(redis_url())}
            os.sched_setaffinity(0, before)
            environment = self._alone | urls
            key = run_module("streams.product", "prepare", SYMBOLS, **environment).decode()
            engine = module("product", "engine", tick_port)
            serve = module("product", "serve", port, tick_port)
            enter(running(engine, self._directory / "engine.log", [tick_port], environment, CLIENT_CORE))
            process = enter(running(serve, self._directory / "product.log", [port], environment))
            yield Target(port, tick_port, (process.pid,), options(key))


def options(key: str) -> Mapping[str, object]:
    return {"key": key, "path": "/ws/market", "replies": 1}


def servers(directory: Path, product: Product) -> dict[str, Start]:
    node = ["node", str(HERE / "peers" / "node_ws.cjs")]
    modules = {"NODE_PATH": str(NODE_MODULES)}
    start = partial(peer, directory)
    return {
        cases.OURS: product.alone,
        cases.OURS_REDIS: product.over_redis,
        cases.TOGETHER: product.together,
        cases.LIMIT: partial(start, [str(LIMIT)], "send"),
        cases.LIMIT_JOINED: partial(start, [str(LIMIT)], "join"),
        cases.UWEBSOCKETS: partial(start, module("peers.uwebsockets")),
        cases.NODE: partial(start, node, "send", environment=modules),
        cases.NODE_JOINED: partial(start, node, "join", environment=modules),
        cases.NATS: partial(nats, directory),
        cases.NCHAN: partial(nchan, directory),
        cases.CHANNELS: partial(channels, directory),
    }


@contextmanager
def peer(
    directory: Path, command: list[str], *words: str, environment: Mapping[str, str] = NOTHING
) -> Iterator[Target]:
    """One that is given the ports of clients and ticks, and takes ticks as lines."""
    ports = port, tick_port = free_port(), free_port()
    everything = [*command, *map(str, ports), *words]
    with running(everything, directory / "peer.log", ports, environment) as process:
        yield Target(port, tick_port, (process.pid,))


@contextmanager
def channels(directory: Path) -> Iterator[Target]:
    with redis_url() as url, redis.Redis.from_url(url) as client:
        os.sched_setaffinity(client.info("server")["process_id"], {CLIENT_CORE})
        with peer(directory, module("peers.channels_tutorial"), environment={"REDIS_URL": url}) as target:
            yield target


@contextmanager
def nats(directory: Path) -> Iterator[Target]:
    ports = port, tick_port = free_port(), free_port()
    filled = fill(HERE / "peers/nats.conf", directory, {"CLIENT_PORT": port, "TICK_PORT": tick_port})
    command = [which("nats-server") or "/usr/sbin/nats-server", "-c", str(filled)]
    with running(command, directory / "nats.log", ports) as process:
        yield Target(port, tick_port, (process.pid,), {"dialect": "nats"})


@contextmanager
def nchan(directory: Path) -> Iterator[Target]:
    """On Debian's nginx."""
    port, tick_port = free_port(), free_port()
    places = {"CLIENT_PORT": port, "TICK_PORT": tick_port, "MODULES": NGINX_MODULES}
    filled = fill(HERE / "peers/nchan.conf", directory, places)
    command = ["nginx", "-p", str(directory), "-c", str(filled)]
    with running(command, directory / "nginx.log", [port]) as process:
        workers = tuple(children(process.pid))
        yield Target(port, tick_port, workers, {"dialect": "post", "path": "/subscribe"})
