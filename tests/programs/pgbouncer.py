"""PgBouncer before a PostgreSQL: each transaction gets whichever connection is free."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import Signals
from urllib.parse import urlsplit

import psycopg

from tests.patience import PATIENCE_S, wait_until

from . import services
from .debian import require_debian

# Few, so that they are shared in earnest: each process alone would take more.
CONNECTIONS = 4


class PgBouncer:
    def __init__(self, directory: Path, server_url: str, mode: str = "transaction") -> None:
        self._program = require_debian("pgbouncer")
        self._directory, server = directory, urlsplit(server_url)
        self.port = services.free_port()
        self.url = server_url.replace(f":{server.port}/", f":{self.port}/")
        people = directory / "people.txt"
        people.write_text('"postgres" ""\n')
        self._settings = directory / "pgbouncer.ini"
        self._settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {people}\npool_mode = {mode}\n"
            f"default_pool_size = {CONNECTIONS}\nmax_client_conn = 200\n"
            # What is left in a connection of a database that is to be dropped goes soon.
            f"server_idle_timeout = 1\nadmin_users = postgres\n"
        )
        for path in (people, self._settings):
            path.chmod(0o644)

    @contextmanager
    def running(self) -> Iterator[str]:
        with (self._directory / "pgbouncer.log").open("ab") as out:
            # It refuses root.
            command = [*services.guard(Signals.SIGKILL), self._program, str(self._settings)]
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        try:
            wait_until(self._answers)
            yield self.url
        finally:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url, connect_timeout=int(PATIENCE_S)).close()
            return True
        return False

    def shown(self, what: str) -> list[tuple[object, ...]]:
        """What it says of itself: `SHOW POOLS` and so on."""
        admin = self.url.rpartition("/")[0] + "/pgbouncer"
        with psycopg.connect(admin, autocommit=True) as connection:
            # It has no extended protocol here.
            return psycopg.ClientCursor(connection).execute(f"SHOW {what}").fetchall()
