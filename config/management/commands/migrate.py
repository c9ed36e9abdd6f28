"""Django's `migrate`, but it never makes a running service wait long for a table."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import DatabaseError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from core.database import fetch
from core.process import wait_for_database
from core.program import command

LOCK_NOT_AVAILABLE = "55P03"
# On a machine that has just started PostgreSQL may still be replaying its log.
DATABASE_WITHIN_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0


class Command(MigrateCommand):
    """While a migration waits for a table, every later query waits behind it, even a read. So it gives up
    early, lets them pass, and tries again."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--attempts", type=int, default=30, help="How often a table that is in use is tried. Default: 30."
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        # The checks before `handle` already query the database.
        if settings.PRODUCTION:
            wait_for_database("`migrate`", within_s=DATABASE_WITHIN_S)
        return super().execute(*args, **options)

    def handle(self, *args: Any, attempts: int = 30, **options: Any) -> None:
        database = connections[options["database"]]
        if database.vendor != "postgresql":
            with numbers_kept(database):
                super().handle(*args, **options)
            return
        try:
            self._try(database, args, attempts, options)
        finally:
            # `serve` migrates as well outside production, and goes on with this connection.
            with suppress(DatabaseError), database.cursor() as cursor:
                cursor.execute("RESET lock_timeout; RESET idle_in_transaction_session_timeout")

    def _try(
        self, database: BaseDatabaseWrapper, args: Sequence[Any], attempts: int, options: dict[str, Any]
    ) -> None:
        for attempt in range(1, attempts + 1):
            self._set_bounds(database)
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                    raise
                if attempt < attempts:
                    self._wait(attempt)
            else:
                return
        raise CommandError(
            f"A table was in use each time. What was done stays done: run `{command('migrate')}` again when"
            " there is less to do, or end the long transaction (see pg_stat_activity)."
        )

    def _set_bounds(self, database: BaseDatabaseWrapper) -> None:
        if database.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
            # A pooler would pass them on to the next user of the connection.
            self.stdout.write(
                "Behind a pooler a migration cannot bound how long it waits for a table, while others wait"
                " behind it: run this with the address of PostgreSQL itself in DATABASE_URL."
            )
            return
        with database.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {settings.MIGRATION_LOCK_MS:d}")
            # A data migration may take longer than a statement of the service may.
            cursor.execute("SET idle_in_transaction_session_timeout = '10min'")

    def _wait(self, attempt: int) -> None:
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1))
        self.stdout.write(f"\nA table is in use, so others go first. Trying again in {pause_s:.0f} s.")
        self.stdout.flush()
        time.sleep(pause_s)


@contextmanager
def numbers_kept(database: BaseDatabaseWrapper) -> Iterator[None]:
    """When a migration rebuilds a table, SQLite forgets the numbers of rows that were deleted."""
    before = numbers_of(database)
    try:
        yield
    finally:
        now = numbers_of(database)
        with database.cursor() as cursor:
            for table in before.keys() & set(database.introspection.table_names(cursor)):
                if now.get(table, 0) < before[table]:
                    cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
                    cursor.execute("INSERT INTO sqlite_sequence VALUES (%s, %s)", [table, before[table]])


def numbers_of(database: BaseDatabaseWrapper) -> dict[str, int]:
    # SQLite makes it with the first table that is numbered.
    if not fetch("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'", using=database.alias):
        return {}
    return dict(fetch("SELECT name, seq FROM sqlite_sequence", using=database.alias))
