"""A PostgreSQL with a standby that has whatever was acknowledged, and that can take over."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import Signals

import psycopg

from tests.databases import prepared
from tests.patience import wait_until
from tests.programs import services

IN_STEP = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
SYNCHRONOUS = ("synchronous_commit=remote_apply", "synchronous_standby_names=*")


class PostgresPair:
    """The first is the primary, until the second is promoted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._data = directory / "primary", directory / "standby"
        prepared.copy_postgres(self._data[0])
        self.ports = services.free_port(), services.free_port()
        self._running = ExitStack(), ExitStack()

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write&connect_timeout=2"

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._running[0], self._running[1]:
            # It waits for no standby before there is one.
            self._start(0, "listen_addresses=127.0.0.1")
            self._copy()
            self._start(1, "synchronous_commit=remote_apply", ready="read-only connections")
            with self._ask(0) as primary:
                for setting in SYNCHRONOUS:
                    name, _, value = setting.partition("=")
                    primary.execute(f"ALTER SYSTEM SET {name} = '{value}'")
                primary.execute("SELECT pg_reload_conf()")
                wait_until(lambda: primary.execute(IN_STEP).fetchone() == (1,))
            yield

    def _start(self, number: int, *settings: str, ready: str = services.READY) -> None:
        options = [f"--{setting}" for setting in (*services.LOCAL, *settings)]
        binary, data, port = str(services.bundled(*services.POSTGRES)), self._data[number], self.ports[number]
        command = [binary, "-D", str(data), "-p", str(port), *options]
        log = self._directory / f"postgres-{number}.log"
        self._running[number].enter_context(services.serving(command, log, Signals.SIGQUIT, ready=ready))

    def _copy(self) -> None:
        program = services.bundled(*services.POSTGRES).parent / "pg_basebackup"
        self._data[1].mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self._data[1], self._data[0].stat().st_uid, self._data[0].stat().st_gid)
        where = ["-h", "127.0.0.1", "-p", str(self.ports[0]), "-U", "postgres", "-D", str(self._data[1])]
        how = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream"]
        command = [*services.guard(Signals.SIGTERM), str(program), *where, *how]
        subprocess.run(command, check=True, capture_output=True, timeout=services.TIMEOUT_S)

    def _ask(self, number: int) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{self.ports[number]}/postgres", autocommit=True
        )

    def end_primary(self) -> None:
        """As a crash would."""
        self._running[0].close()

    def promote(self) -> None:
        with self._ask(1) as standby:
            standby.execute("SELECT pg_promote()")
