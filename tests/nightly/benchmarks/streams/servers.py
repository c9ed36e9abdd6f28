"""How each of the compared servers is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from shutil import which

import redis

from tests.nightly.benchmarks.configurations import fill
from tests.nightly.benchmarks.servers import CLIENT_CORE
from tests.nightly.benchmarks.streams.product.runs import Product
from tests.programs.services import free_port, redis_url

from . import names
from .load import Target
from .nginx import nginx
from .places import HERE, LIMIT, NODE_MODULES
from .processes import NOTHING, module, running

Start = Callable[[], AbstractContextManager[Target]]


def servers(directory: Path, product: Product) -> dict[str, Start]:
    node = ["node", str(HERE / "peers" / "node_ws.cjs")]
    tutorial = "peers.channels_tutorial.serve"
    start = partial(peer, directory)
    return {
        names.OURS: product.alone,
        names.OURS_REDIS: product.over_redis,
        names.OURS_TLS: product.encrypted,
        names.OURS_NGINX: product.behind_nginx,
        names.LIMIT: partial(start, [str(LIMIT)], "send"),
        names.LIMIT_JOINED: partial(start, [str(LIMIT)], "join"),
        names.UWEBSOCKETS: partial(start, module("peers.uwebsockets")),
        names.PICOWS: partial(start, module("peers.picows_server")),
        names.NODE: partial(start, node, "send", environment={"NODE_PATH": str(NODE_MODULES)}),
        names.NODE_JOINED: partial(start, node, "join", environment={"NODE_PATH": str(NODE_MODULES)}),
        names.NATS: partial(nats, directory),
        names.NCHAN: partial(nchan, directory),
        names.CHANNELS_REDIS: partial(channels_over_redis, directory),
        names.CHANNELS_MEMORY: partial(start, module(tutorial)),
    }


@contextmanager
def peer(
    directory: Path, command: list[str], *words: str, environment: Mapping[str, str] = NOTHING
) -> Iterator[Target]:
    """One that is given the ports of clients and ticks, and takes ticks as lines."""
    port, tick_port = free_port(), free_port()
    ports = [str(port), str(tick_port)]
    with running([*command, *ports, *words], directory / "peer.log", [port, tick_port], environment) as pid:
        yield Target(port, tick_port, (pid,))


@contextmanager
def channels_over_redis(directory: Path) -> Iterator[Target]:
    with redis_url() as url:
        with redis.Redis.from_url(url) as client:
            os.sched_setaffinity(client.info("server")["process_id"], {CLIENT_CORE})
        with peer(
            directory, module("peers.channels_tutorial.serve"), environment={"REDIS_URL": url}
        ) as target:
            yield target


@contextmanager
def nats(directory: Path) -> Iterator[Target]:
    port, tick_port = free_port(), free_port()
    binary = which("nats-server") or "/usr/sbin/nats-server"
    words = {"CLIENT_PORT": port, "TICK_PORT": tick_port}
    command = [binary, "-c", str(fill(HERE / "peers" / "nats.conf", directory, words))]
    with running(command, directory / "nats.log", [port, tick_port]) as pid:
        yield Target(port, tick_port, (pid,), {"dialect": "nats"})


@contextmanager
def nchan(directory: Path) -> Iterator[Target]:
    with nginx("nchan.conf", directory, {}) as (port, tick_port, pids):
        yield Target(port, tick_port, pids, {"dialect": "post", "path": "/subscribe"})
