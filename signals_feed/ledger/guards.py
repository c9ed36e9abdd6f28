"""The triggers by which the database refuses what trigger_rules.py, order_rules.py and log_rules.py say, and
the check that they are there: put up after every migrate where they are missing or not what they should be.

SQLite drops a table's triggers whenever a migration makes it anew, so they belong to no migration. It also
refuses to make a table anew while triggers of others name it, so they come down before one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core.checks import CheckMessage, Warning
from django.db import connections

from core.program.commands import command

from .log_rules import LOG_GUARDS, LOG_TABLES
from .order_rules import OF_BEGUN, ORDER_GUARDS
from .trigger_rules import BEGUN, ENTRY, EVIDENCE, GUARDS, HEAD, SIGNAL, Guard

KEPT_WHOLE = (SIGNAL, EVIDENCE, ENTRY, HEAD)
"""PostgreSQL's TRUNCATE passes by the triggers of rows; SQLite has no TRUNCATE."""


COLUMNS = {
    "postgresql": "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND pg_table_is_visible(c.oid)",
    "sqlite": "SELECT t.name, c.name FROM sqlite_master t, PRAGMA_TABLE_INFO(t.name) c",
}


# Else a table or a function of a session's own, such as a temporary one, would stand for that of a trigger.
OWN_SCHEMA = "'pg_catalog, ' || QUOTE_IDENT(CURRENT_SCHEMA()) || ', pg_temp'"


class Trigger(NamedTuple):
    name: str
    table: str
    create: str
    body: str = ""
    """The body of PostgreSQL's function; in SQLite it is part of the trigger."""
    needs: tuple[str, str] | None = None

    @property
    def definition(self) -> str:
        """As the database gives it back: a trigger of the right name may refuse nothing."""
        return self.create + self.body


class Members:
    """In a condition, `{new[written]}` is a member of the new entry's payload, and `{text_of[NEW]}` the part
    of the new note that is signed."""

    def __init__(self, spelled: str) -> None:
        self._spelled = spelled

    def __getitem__(self, name: str) -> str:
        return self._spelled.format(name)


# `new` and `e` are entries whose members are texts, `…_s` the same times as seconds.
IN_SQLITE: dict[str, Any] = {
    "differs": "IS NOT",
    # Django gives SQLite this function.
    "digest_of_name": "SHA256(NEW.username)",
    "new": Members("CAST(JSON_EXTRACT(NEW.payload, '$.{}') AS TEXT)"),
    "e": Members("CAST(JSON_EXTRACT(e.payload, '$.{}') AS TEXT)"),
    "new_s": Members("(JULIANDAY(JSON_EXTRACT(NEW.payload, '$.{}')) * 86400)"),
    "e_s": Members("(JULIANDAY(JSON_EXTRACT(e.payload, '$.{}')) * 86400)"),
    "clock": "(JULIANDAY('now') * 86400)",
    "text_of": Members("SUBSTR({0}.note, 1, INSTR({0}.note, CHAR(10) || CHAR(10)))"),
    "yes": "'1'",
}
IN_POSTGRESQL: dict[str, Any] = {
    "differs": "IS DISTINCT FROM",
    "digest_of_name": "ENCODE(SHA256(CONVERT_TO(NEW.username, 'UTF8')), 'hex')",
    "new": Members("(NEW.payload::json ->> '{}')"),
    "e": Members("(e.payload::json ->> '{}')"),
    "new_s": Members("EXTRACT(EPOCH FROM (NEW.payload::json ->> '{}')::timestamptz)"),
    "e_s": Members("EXTRACT(EPOCH FROM (e.payload::json ->> '{}')::timestamptz)"),
    "clock": "EXTRACT(EPOCH FROM CLOCK_TIMESTAMP())",
    "text_of": Members("SPLIT_PART({}.note, CHR(10) || CHR(10), 1)"),
    "yes": "'true'",
}


def expected_triggers(vendor: str) -> list[Trigger]:
    guards = (*GUARDS, *ORDER_GUARDS, *LOG_GUARDS)
    if vendor != "postgresql":
        return [in_sqlite(guard) for guard in guards]
    triggers = [in_postgresql(guard) for guard in guards if not guard.only_sqlite]
    whole = dict.fromkeys(KEPT_WHOLE) | LOG_TABLES | {BEGUN: OF_BEGUN}
    return [*triggers, *(against_truncate(table, needs) for table, needs in whole.items())]


def in_sqlite(guard: Guard) -> Trigger:
    condition = guard.condition.format_map(IN_SQLITE)
    when = f" WHEN {condition}" if condition else ""
    return Trigger(
        guard.name,
        guard.table,
        f"CREATE TRIGGER {guard.name} BEFORE {guard.act} ON {guard.table}{when}"
        f" BEGIN SELECT RAISE(ABORT, '{guard.refusal}'); END",
        needs=guard.needs,
    )


def in_postgresql(guard: Guard) -> Trigger:
    name, table = guard.name, guard.table
    condition = guard.condition.format_map(IN_POSTGRESQL) or "true"
    row = "OLD" if guard.act == "DELETE" else "NEW"
    return Trigger(
        name,
        table,
        f"CREATE TRIGGER {name} BEFORE {guard.act} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
        f" BEGIN IF {condition} THEN RAISE EXCEPTION '{guard.refusal}' USING ERRCODE = 'check_violation';"
        f" END IF; RETURN {row}; END ",
        guard.needs,
    )


def against_truncate(table: str, needs: tuple[str, str] | None) -> Trigger:
    name = f"{table}_is_kept"
    return Trigger(
        name,
        table,
        f"CREATE TRIGGER {name} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
        f" BEGIN RAISE EXCEPTION '{table} is never emptied.' USING ERRCODE = 'check_violation'; END ",
        needs,
    )


def missing_triggers(using: str = "default") -> set[str]:
    """Triggers that are missing, disabled, or not what they should be."""
    connection = connections[using]
    find = (
        "SELECT pg_get_triggerdef(t.oid, true) || p.prosrc FROM pg_trigger t"  # noqa: S608 - a text of our own
        " JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')"
        f" AND p.proconfig = ARRAY['search_path=' || {OWN_SCHEMA}]"
        if connection.vendor == "postgresql"
        else "SELECT sql FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(find)
        standing = {definition for (definition,) in cursor.fetchall()}
    there = columns_there(using)
    return {
        trigger.name
        for trigger in expected_triggers(connection.vendor)
        if trigger.definition not in standing and (trigger.needs is None or trigger.needs in there)
    }


def columns_there(using: str) -> set[tuple[str, str]]:
    """Fewer where the migrations go only so far. Django would parse the definition of each table."""
    with connections[using].cursor() as cursor:
        cursor.execute(COLUMNS[connections[using].vendor])
        return set(cursor.fetchall())


def has_tables(using: str) -> bool:
    """False before the first migration."""
    return set(KEPT_WHOLE) <= set(connections[using].introspection.table_names())


def put_up_triggers(using: str = "default", **_: Any) -> None:
    """Create the missing triggers, after each migrate."""
    connection = connections[using]
    names = missing_triggers(using)
    if not names or not has_tables(using):
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT {OWN_SCHEMA}")
            (path,) = cursor.fetchone()
        for trigger in expected_triggers(connection.vendor):
            if trigger.name in names:
                cursor.execute(dropping(trigger, connection.vendor))
                if trigger.body:
                    cursor.execute(
                        f"CREATE OR REPLACE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql"
                        f" SET search_path = {path} AS $${trigger.body}$$"
                    )
                cursor.execute(trigger.create)


def take_down_triggers(using: str = "default") -> None:
    """For migrating backwards; `put_up_triggers` creates them again."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for trigger in expected_triggers(connection.vendor):
            cursor.execute(dropping(trigger, connection.vendor))


def make_way(using: str = "default", plan: Sequence[object] = (), **_: Any) -> None:
    """Before each migrate that has something to do."""
    if plan and connections[using].vendor != "postgresql":
        take_down_triggers(using)


def dropping(trigger: Trigger, vendor: str) -> str:
    place = f" ON {trigger.table}" if vendor == "postgresql" else ""
    return f"DROP TRIGGER IF EXISTS {trigger.name}{place}"


def check_guards(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Runs only where a database is named, as by `migrate` and `check --database default`. It warns, because
    an error would keep `migrate` from fixing it."""
    missing = [", ".join(sorted(missing_triggers(alias))) for alias in databases or () if has_tables(alias)]
    return [
        Warning(
            f"The database would let published signals be changed: {names} missing, disabled or changed.",
            hint=f"Run `{command('migrate')}` to restore them. Then `{command('verify_ledger')}` "
            "says whether anything was changed in the meantime.",
            id="signals_feed.W001",
        )
        for names in filter(None, missing)
    ]
