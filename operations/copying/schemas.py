"""The tables of a database that is to be filled: whether they are empty, and how they are made anew."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.process import UNFINISHED
from market.store import make_months

from .stores import Store, quoted
from .tables import MigrationName
from .unfinished import Unfinished, note, numbers_given

# Rows that migrating makes, and those that a service or a backup leaves behind at once.
MADE_BY_MIGRATING = {
    *("django_content_type", "auth_permission", "accounts_tier", "accounts_attempt"),
    *("auth_group", "auth_group_permissions", "pages_sitetext"),
    *("market_enginestate", "status_processreport", "operations_lastbackup"),
}
FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace"
    " AND p.prorettype = 'trigger'::regtype"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
)


def filled_tables(store: Store) -> list[str]:
    """What a person or a market has put there."""
    kept = {"django_migrations", "sqlite_sequence", UNFINISHED, *MADE_BY_MIGRATING}
    return [
        name
        for name in sorted(store.names() - kept)
        if store.ask(f"SELECT 1 FROM {quoted(name)} LIMIT 1")  # noqa: S608 - names of the database
    ]


def make_tables_anew(store: Store, migrations: list[MigrationName]) -> dict[str, int]:
    """Returns the numbers that the old ones gave."""
    numbers = drop_everything(store)
    MigrationExecutor(connection).migrate(migrations)
    return numbers


def make_months_named(store: Store, names: Iterable[str]) -> None:
    """Before their candles, which would have to be moved into them."""
    if store.vendor == "postgresql":
        make_months(datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC) for name in names)


def drop_everything(store: Store) -> dict[str, int]:
    """The tables and the functions of their triggers; what is not finished stays marked. Returns the numbers
    that were given."""
    numbers = numbers_given(store)
    names = sorted(store.names() - {UNFINISHED, "sqlite_sequence"})
    if store.vendor == "sqlite":
        store.tell("PRAGMA foreign_keys = OFF")
    store.tell("BEGIN")
    note(store, Unfinished(numbers=numbers))
    for name in names:
        cascade = "" if store.vendor == "sqlite" else " CASCADE"
        store.tell(f"DROP TABLE IF EXISTS {quoted(name)}{cascade}")
    if store.vendor == "postgresql":
        for (function,) in store.ask(FUNCTIONS):
            store.tell(f"DROP FUNCTION {function}")
    store.tell("COMMIT")
    return numbers
