"""What the database itself refuses: triggers, put up after every migrate where they are missing.

SQLite drops a table's triggers whenever a migration makes it anew, so they belong to no migration. To change
one, drop the old one in a migration; what stands here is put up after it."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connections

SIGNAL, EVIDENCE = "signals_feed_signal", "signals_feed_evidence"
ENTRY, HEAD = "signals_feed_ledgerentry", "signals_feed_ledgerhead"
FROZEN = (
    *("id", "user_id", "instrument_id", "direction", "entry", "stop_loss", "take_profit"),
    *("tradable_price", "published_at", "expires_at", "token"),
)
IS_DEMO = (
    "EXISTS (SELECT 1 FROM signals_feed_signal s JOIN accounts_account a ON a.user_id = s.user_id "
    "WHERE s.id = NEW.signal AND a.is_demo)"
)
NOT_REMOVED = "NOT EXISTS (SELECT 1 FROM {entry} e WHERE e.signal = OLD.{signal} AND e.kind = 'remove')"


class Guard(NamedTuple):
    """A trigger that raises when its condition holds. `{differs}` compares as each database spells it."""

    name: str
    table: str
    act: str
    condition: str
    refusal: str


GUARDS = (
    Guard(
        "signal_is_frozen",
        SIGNAL,
        "UPDATE",
        "OLD.status = 'closed' OR "
        + " OR ".join(f"NEW.{term} {{differs}} OLD.{term}" for term in FROZEN)
        + " OR (OLD.cancel_reason <> '' AND (NEW.cancel_reason {differs} OLD.cancel_reason"
        + " OR NEW.cancelled_at {differs} OLD.cancelled_at))",
        "A published signal keeps its terms, and a closed one does not change.",
    ),
    Guard(
        "signal_begins_active",
        SIGNAL,
        "INSERT",
        "NEW.status <> 'active' OR NEW.cancel_reason <> ''",
        "A signal is published active.",
    ),
    Guard(
        "signal_stays",
        SIGNAL,
        "DELETE",
        NOT_REMOVED.format(entry=ENTRY, signal="id"),
        "A published signal stays.",
    ),
    Guard("evidence_is_frozen", EVIDENCE, "UPDATE", "", "Evidence does not change."),
    Guard(
        "evidence_stays",
        EVIDENCE,
        "DELETE",
        NOT_REMOVED.format(entry=ENTRY, signal="signal_id"),
        "Evidence stays.",
    ),
    Guard("ledger_is_frozen", ENTRY, "UPDATE", "", "The ledger does not change."),
    Guard("ledger_stays", ENTRY, "DELETE", "", "The ledger stays."),
    Guard(
        "ledger_goes_on",
        ENTRY,
        "INSERT",
        f"NEW.position <> 1 AND NOT EXISTS (SELECT 1 FROM {ENTRY} e"  # noqa: S608 - names of our own
        " WHERE e.position = NEW.position - 1 AND e.hash = NEW.previous)"
        f" OR NEW.kind = 'remove' AND NOT {IS_DEMO}",
        "A ledger entry follows the last one, and only the signals of the demo are ever removed.",
    ),
    Guard(
        "ledger_head_goes_on",
        HEAD,
        "UPDATE",
        "NEW.position <= OLD.position OR NOT EXISTS"  # noqa: S608 - names of our own
        f" (SELECT 1 FROM {ENTRY} e WHERE e.position = NEW.position AND e.hash = NEW.hash)",
        "The head of the ledger moves to a later entry.",
    ),
    Guard("ledger_head_stays", HEAD, "DELETE", "", "The head of the ledger stays."),
)
KEPT_WHOLE = (SIGNAL, EVIDENCE, ENTRY, HEAD)
"""PostgreSQL empties a table past the triggers of its rows; SQLite knows no TRUNCATE."""


def expected(vendor: str) -> set[str]:
    rows = {guard.name for guard in GUARDS}
    return rows | {f"{table}_is_kept" for table in KEPT_WHOLE} if vendor == "postgresql" else rows


def missing(using: str = "default") -> set[str]:
    connection = connections[using]
    find = (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(find)
        return expected(connection.vendor) - {name for (name,) in cursor.fetchall()}


def put_up(using: str = "default") -> None:
    """Whatever is missing, once its table is there."""
    connection = connections[using]
    names = missing(using)
    if not names or not set(KEPT_WHOLE) <= set(connection.introspection.table_names()):
        return
    with connection.cursor() as cursor:
        for guard in GUARDS:
            if guard.name in names:
                for statement in statements(guard, connection.vendor):
                    cursor.execute(statement)
        for table in KEPT_WHOLE:
            if f"{table}_is_kept" in names:
                for statement in against_truncate(table):
                    cursor.execute(statement)


def statements(guard: Guard, vendor: str) -> list[str]:
    name, table, act, refusal = guard.name, guard.table, guard.act, guard.refusal
    if vendor != "postgresql":
        condition = guard.condition.format(differs="IS NOT")
        when = f" WHEN {condition}" if condition else ""
        return [
            f"CREATE TRIGGER {name} BEFORE {act} ON {table}{when} BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
        ]
    condition = guard.condition.format(differs="IS DISTINCT FROM") or "true"
    row = "OLD" if act == "DELETE" else "NEW"
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608 - names of our own
        f"IF {condition} THEN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'check_violation'; END IF; "
        f"RETURN {row}; END $$",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} BEFORE {act} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


def against_truncate(table: str) -> list[str]:
    name = f"{table}_is_kept"
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608 - names of our own
        f"RAISE EXCEPTION '{table} is never emptied.' USING ERRCODE = 'check_violation'; END $$",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
    ]


def take_down(using: str = "default") -> None:
    """For going back behind them; `put_up` brings them again."""
    connection = connections[using]
    is_postgresql = connection.vendor == "postgresql"
    tables = {guard.name: guard.table for guard in GUARDS} | {
        f"{table}_is_kept": table for table in KEPT_WHOLE
    }
    with connection.cursor() as cursor:
        for name in expected(connection.vendor):
            place = f" ON {tables[name]}" if is_postgresql else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{place}")
