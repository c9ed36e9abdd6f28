"""A Redis and a PostgreSQL that a test may kill, pause and start again on their port."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
from redis import Redis

from tests.databases import prepared
from tests.patience import PATIENCE_S
from tests.programs import services

from .frozen import frozen


class PrivateRedis:
    def __init__(self, directory: Path) -> None:
        self.directory, self.port = directory, services.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def running(self) -> AbstractContextManager[str]:
        return services.redis(self.directory, self.port)

    @property
    def client(self) -> Any:
        return Redis.from_url(self.url, socket_timeout=PATIENCE_S)

    @property
    def pid(self) -> int:
        with self.client as client:
            return int(client.info("server")["process_id"])

    def paused(self) -> AbstractContextManager[None]:
        return frozen([self.pid])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class PrivatePostgres:
    """A migrated one whose data outlives a kill, and a failing disk only where it is not forgetful."""

    def __init__(self, directory: Path, *, is_forgetful: bool = True) -> None:
        self._settings = services.LOCAL + (services.FORGETFUL if is_forgetful else ())
        self.directory, self.data = directory, directory / "postgres"
        prepared.copy_postgres(self.data)
        # After what may take seconds: it is free now.
        self.port = services.free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def running(self) -> AbstractContextManager[int]:
        """Leaving the context stops it as a crash would: SIGQUIT."""
        settings = [f"--{setting}" for setting in self._settings]
        binary = services.bundled(*services.POSTGRES)
        command = [str(binary), "-D", str(self.data), "-p", str(self.port), *settings]
        return services.serving(command, self.directory / "postgres.log", signal.SIGQUIT)

    def break_connections(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def paused(self) -> AbstractContextManager[None]:
        """All its processes: connections stay open, and nothing answers on them any more."""
        return frozen([int((self.data / "postmaster.pid").read_text().split()[0])])
