"""A command that writes must not meet a database of another age."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def refuse_pending_migrations() -> None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        first, others = plan[0][0], len(plan) - 1
        more = f" and {others} more" if others else ""
        raise CommandError(
            f"The database is behind the code: {first.app_label}.{first.name}{more} is pending. "
            "Run `manage.py migrate` first."
        )
