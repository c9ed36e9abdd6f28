"""Empties the database after a test with transactions of its own: only what is not empty, because almost all
of it is, and never what every installation has, which Django's flush takes and makes anew for each test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import TransactionTestCase

from accounts.models import Tier
from config.roles import ROLES
from core.database import fetch
from pages.front import write_first_texts
from pages.models import SiteText
from signals_feed.ledger.guards import KEPT_WHOLE, LOG_TABLES, put_up_triggers, take_down_triggers
from signals_feed.ledger.trigger_rules import BEGUN
from tests.factories import make_tiers

KEPT = {
    *("django_migrations", "django_content_type", "auth_permission"),
    *("auth_group", "auth_group_permissions"),
}


MADE_AGAIN: dict[str, Callable[[], None]] = {
    Tier._meta.db_table: make_tiers,
    SiteText._meta.db_table: partial(write_first_texts, "default", apps),
}
made: dict[str, list[Any]] = {}
"""Their rows. Hardly a test changes them, and to make them takes longer than to look."""


def empty_database(*_: TransactionTestCase) -> None:
    existing = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    changed = {table for table in MADE_AGAIN.keys() & existing if rows_of(table) != made.get(table)}
    if tables := not_empty(sorted(existing - KEPT - MADE_AGAIN.keys() | changed)):
        with transaction.atomic():
            (empty_in_postgresql if connection.vendor == "postgresql" else empty_in_sqlite)(tables)
    if Group._meta.db_table in existing:
        Group.objects.exclude(name__in=ROLES).delete()
    for table in changed:
        MADE_AGAIN[table]()
        made[table] = rows_of(table)


def rows_of(table: str) -> list[Any]:
    return list(fetch(f"SELECT * FROM {table} ORDER BY 1"))  # noqa: S608


def not_empty(tables: list[str]) -> list[str]:
    asked = (
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})"  # noqa: S608
        for table in tables
    )
    return [table for (table,) in fetch(" UNION ALL ".join(asked))]


def delete(tables: list[str]) -> None:
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608


def empty_in_postgresql(tables: list[str]) -> None:
    """As a replica does: its triggers rest, those that keep published signals and those of foreign keys."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    delete(tables)


def empty_in_sqlite(tables: list[str]) -> None:
    if not {*KEPT_WHOLE, *LOG_TABLES, BEGUN} & set(tables):
        delete(tables)
        return
    take_down_triggers()
    delete(tables)
    put_up_triggers()
