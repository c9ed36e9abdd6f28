from __future__ import annotations

import asyncio

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.waiting import wait_for_database
from config.demo.login import fresh_link
from config.demo.seed import Progress, is_there, remove, seed
from market.services import market


def prepare(out: OutputWrapper) -> str | None:
    """Bring the database to where the service can start. In production that is the operator's act.
    What comes back is the link for the demo's staff."""
    if settings.PRODUCTION:
        wait_for_database("The service")
    is_behind = bool(_pending())
    if settings.PRODUCTION:
        if is_behind:
            raise CommandError("The database is behind the code. Run `manage.py migrate` first.")
        return None
    if is_behind:
        out.write("Preparing the database")
        call_command("migrate", verbosity=0, interactive=False)
    if settings.DEMO:
        seed(_line(out))
    elif is_there():
        # Ticks that a killed process had acknowledged: their numbers end with the demo's quotes.
        asyncio.run(market.write_remains())
        remove(_line(out))
    staff_link = fresh_link() if settings.DEMO else None
    connection.close()
    return staff_link


def _pending() -> list[object]:
    executor = MigrationExecutor(connection)
    return list(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _line(out: OutputWrapper) -> Progress:
    """One line that changes where somebody watches, a line each where nobody does."""

    def write(text: str) -> None:
        if out.isatty():
            out.write(f"\r\033[K{text}", ending="")
        else:
            out.write(text)
        out.flush()

    return write
