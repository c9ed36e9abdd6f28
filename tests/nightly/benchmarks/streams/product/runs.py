"""The product in its four shapes: alone, over Redis, and with TLS by itself or by nginx."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.nightly.benchmarks.servers import CLIENT_CORE
from tests.nightly.benchmarks.streams.load import Target
from tests.nightly.benchmarks.streams.nginx import nginx
from tests.nightly.benchmarks.streams.places import CERTIFICATE, KEY
from tests.nightly.benchmarks.streams.prepare import SYMBOLS
from tests.nightly.benchmarks.streams.processes import module, running
from tests.programs.installation import SETTINGS
from tests.programs.services import database_url, free_port, redis_url


class Product:
    """Prepared once: instruments, and an account whose key opens all the sockets."""

    def __init__(self, directory: Path, symbols: int = SYMBOLS) -> None:
        self._directory = directory
        self._alone = SETTINGS | {"VAR_DIR": str(directory / "var")}
        self._key = prepare(self._alone, symbols)

    @contextmanager
    def alone(self) -> Iterator[Target]:
        with self._serving() as (port, tick_port, pid):
            yield Target(port, tick_port, (pid,), self._options())

    @contextmanager
    def encrypted(self) -> Iterator[Target]:
        with self._serving(CERTIFICATE, KEY) as (port, tick_port, pid):
            yield Target(port, tick_port, (pid,), self._options(), is_encrypted=True)

    @contextmanager
    def behind_nginx(self) -> Iterator[Target]:
        with (
            self._serving() as (behind, tick_port, pid),
            nginx("tls.conf", self._directory, {"BEHIND_PORT": behind}) as (port, _, pids),
        ):
            yield Target(port, tick_port, (pid, *pids), self._options(), is_encrypted=True)

    @contextmanager
    def over_redis(self) -> Iterator[Target]:
        """In service engine, Redis and PostgreSQL have cores of their own; here they share the client's."""
        with ExitStack() as stack:
            enter, port, tick_port = stack.enter_context, free_port(), free_port()
            with started_on(CLIENT_CORE):
                urls = {"DATABASE_URL": enter(database_url()), "REDIS_URL": enter(redis_url())}
            environment = self._alone | urls
            key = prepare(environment)
            engine = module("product.engine_process", tick_port)
            enter(running(engine, self._log("engine"), [tick_port], environment, CLIENT_CORE))
            serving = module("product.serve", port, tick_port)
            pid = enter(running(serving, self._log("product"), [port], environment))
            yield Target(port, tick_port, (pid,), self._options(key))

    @contextmanager
    def _serving(self, *certificate: Path) -> Iterator[tuple[int, int, int]]:
        port, tick_port = free_port(), free_port()
        command = module("product.serve", port, tick_port, *certificate)
        with running(command, self._log("product"), [port, tick_port], self._alone) as pid:
            yield port, tick_port, pid

    def _options(self, key: str = "") -> Mapping[str, object]:
        return {"key": key or self._key, "path": "/ws/market", "replies": 1}

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


@contextmanager
def started_on(core: int) -> Iterator[None]:
    """Processes keep to the core of the one that starts them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def prepare(environment: Mapping[str, str], symbols: int = SYMBOLS) -> str:
    done = subprocess.run(
        module("prepare", symbols),
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
