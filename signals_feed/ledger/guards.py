"""The triggers by which the database keeps the ledger: they refuse what trigger_rules.py and the rules of
order and log here forbid. Created after every migrate if they are missing or differ.

SQLite drops a table's triggers whenever a migration recreates it, so they belong to no migration. It also
refuses to recreate a table while triggers of others name it, so they are dropped before one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core.checks import CheckMessage, Warning
from django.db import connections
from django.db.backends.utils import CursorWrapper

from core.database import fetch
from core.program import command
from signals_feed.contradictions import WRITTEN_WITHIN_MS
from signals_feed.judge import ARM_WITHIN_MS
from signals_feed.record import RULES

from .ledger import NO_SIGNAL
from .trigger_rules import BEGUN, ENTRY, EVIDENCE, GUARDS, HEAD, SIGNAL, Guard, is_not_replaced

# The changes of the log of checkpoints that the database refuses, as conditions of triggers: of a
# checkpoint only its signatures may be made again, and of a key only how it is sealed and when it stops
# signing.
KEY, CHECKPOINT, COSIGNATURE = (
    "transparency_logkey",
    "transparency_signedcheckpoint",
    "transparency_cosignature",
)
LOG_TABLES = {KEY: (KEY, "verifier"), CHECKPOINT: (CHECKPOINT, "note"), COSIGNATURE: (COSIGNATURE, "witness")}
"""Each with a column, because the migrations may not have reached it yet."""


def differ(*names: str) -> str:
    return " OR ".join(f"NEW.{name} {{differs}} OLD.{name}" for name in names)


LOG_GUARDS = (
    Guard(
        "log_key_is_frozen",
        KEY,
        "UPDATE",
        f"{differ('id', 'origin', 'verifier', 'made_at')} OR OLD.signs_until IS NOT NULL"
        " AND (NEW.signs_until IS NULL OR NEW.signs_until > OLD.signs_until)",
        "A key of the log does not change, and signs no longer than it was said to.",
        needs=LOG_TABLES[KEY],
    ),
    is_not_replaced(
        "log_key",
        KEY,
        "e.id = NEW.id OR e.verifier = NEW.verifier OR e.origin = NEW.origin AND e.signs_until IS NULL",
        "A key of the log is made once.",
        LOG_TABLES[KEY],
    ),
    Guard(
        "checkpoint_is_frozen",
        CHECKPOINT,
        "UPDATE",
        f"{differ('id', 'origin', 'size', 'made_at')} OR {{text_of[NEW]}} {{differs}} {{text_of[OLD]}}",
        "A checkpoint does not change.",
        needs=LOG_TABLES[CHECKPOINT],
    ),
    Guard(
        "checkpoint_goes_on",
        CHECKPOINT,
        "INSERT",
        f"EXISTS (SELECT 1 FROM {CHECKPOINT} e"  # noqa: S608 - a name of our own
        " WHERE e.id = NEW.id OR e.origin = NEW.origin AND e.size >= NEW.size)",
        "A checkpoint follows the last one.",
        needs=LOG_TABLES[CHECKPOINT],
    ),
    Guard(
        "cosignature_is_frozen",
        COSIGNATURE,
        "UPDATE",
        differ("id", "checkpoint_id", "witness", "first_at", "first_line"),
        "What a witness said first does not change.",
        needs=LOG_TABLES[COSIGNATURE],
    ),
    is_not_replaced(
        "cosignature",
        COSIGNATURE,
        "e.id = NEW.id OR e.checkpoint_id = NEW.checkpoint_id AND e.witness = NEW.witness",
        "A witness cosigns a checkpoint once.",
        LOG_TABLES[COSIGNATURE],
    ),
    *(
        Guard(f"{table}_stays", table, "DELETE", "", "The log of checkpoints stays.", needs=needs)
        for table, needs in LOG_TABLES.items()
    ),
)


# What keeps the ledger in the order in which it was written, as conditions of triggers. The version before
# knows none of these triggers: it leaves them standing, and what it writes passes them.
NEEDS = (SIGNAL, "is_demo")
OF_BEGUN = (BEGUN, "rules")


def has_earlier(kind: str, also: str = "") -> str:
    """Of the same signal, earlier."""
    own = f"SELECT 1 FROM {ENTRY} e WHERE e.signal = NEW.signal AND e.kind = '{kind}'"  # noqa: S608 - names of our own
    return f"EXISTS ({own}{also})"


def one_before(condition: str) -> str:
    before = f"SELECT 1 FROM {ENTRY} e WHERE e.position = NEW.position - 1"  # noqa: S608 - names of our own
    return f"EXISTS ({before} AND {condition})"


def are_apart(one: str, other: str) -> str:
    """A time that cannot be read is apart from all others."""
    return f"NOT COALESCE(ABS({one} - {other}) <= {WRITTEN_WITHIN_MS // 1000}, FALSE)"


HAS_RULES_2 = has_earlier("publish", " AND {e[rules]} = '2'")
BY_RULES_2 = f"({{new[rules]}} = '2' AND NEW.kind = 'publish' OR {HAS_RULES_2})"
# What both databases read as a time has many forms, even words.
IS_TIME = "{new[written]} LIKE '____-__-__T__:__:__.______Z'"
# After the database's clock was set back, entries wait at the last `written` until it has caught up.
NOT_WRITTEN_NOW = (
    f"{are_apart('{new_s[written]}', '{clock}')} AND NOT COALESCE({{new_s[written]}} > {{clock}}"
    f" AND {one_before('{e[written]} = {new[written]}')}, FALSE)"
)
WRITTEN_BEFORE_THE_LAST = one_before("{e_s[written]} > {new_s[written]}")
OWN_S = (
    "CASE NEW.kind WHEN 'publish' THEN {new_s[published_at]} WHEN 'cancel' THEN {new_s[cancelled_at]}"
    " ELSE {new_s[at]} END"
)
IN_TIME = f" AND {{new_s[written]}} <= {{e_s[written]}} + {ARM_WITHIN_MS // 1000}"
IS_FIRST_OF_FILL = " AND e.part = 'fill:1'"
OUT_OF_RULES = (
    # Otherwise a user who can write here contradicts a rival's gains long after they were closed.
    f"NEW.kind IN ('arm', 'fill', 'close_request', 'cancel') AND {has_earlier('close')}",
    f"NEW.kind IN ('arm', 'fill', 'close_request') AND NOT {HAS_RULES_2}",
    "NEW.kind = 'arm' AND NEW.part {differs} {new[for]} || ':' || {new[number]}",
    f"NEW.kind = 'archive' AND (NEW.part {{differs}} {{new[day]}} OR NEW.signal <> '{NO_SIGNAL.hex}')",
    f"NEW.kind = 'arm' AND NEW.part = 'fill:1' AND NOT {has_earlier('publish', IN_TIME)}",
    f"NEW.kind = 'fill' AND NOT {has_earlier('arm', IS_FIRST_OF_FILL)}",
    f"NEW.kind = 'close' AND {HAS_RULES_2} AND ({{new[rules]}} {{differs}} '2'"
    f" OR {{new[close_reason]}} = 'manual' AND NOT {has_earlier('close_request')})",
)

ORDER_GUARDS = (
    Guard(
        "ledger_is_written_now",
        ENTRY,
        "INSERT",
        f"{{new[written]}} IS NULL AND (NEW.kind = 'archive' OR {BY_RULES_2})"
        f" OR {{new[written]}} IS NOT NULL AND (NOT {IS_TIME} OR {NOT_WRITTEN_NOW}"
        f" OR {WRITTEN_BEFORE_THE_LAST})",
        "A ledger entry says when it is written, and none is written before the last one.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_keeps_its_rules",
        ENTRY,
        "INSERT",
        " OR ".join(OUT_OF_RULES),
        "A fill follows its arm, which comes in time, and a close, which is the last, rules and requests.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_is_dated_now",
        ENTRY,
        "INSERT",
        f"NEW.kind IN ('publish', 'arm', 'close_request', 'cancel') AND {BY_RULES_2}"
        f" AND {{new[demo]}} {{differs}} {{yes}} AND NOT {has_earlier('publish', ' AND {e[demo]} = {yes}')}"
        f" AND {are_apart(OWN_S, '{new_s[written]}')}",
        "Only the entries of the demo are dated other than they are written.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_knows_the_demo",
        ENTRY,
        "INSERT",
        f"NEW.kind = 'publish' AND {{new[demo]}} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {SIGNAL} s"  # noqa: S608 - names of our own
        " WHERE s.id = NEW.signal AND s.is_demo = ({new[demo]} = {yes}))"
        f" OR NEW.kind = 'remove' AND NOT EXISTS (SELECT 1 FROM {SIGNAL} s JOIN {ENTRY} e ON e.signal = s.id"
        " WHERE s.id = NEW.signal AND e.kind = 'publish' AND COALESCE({e[demo]} = {yes}, s.is_demo,"
        f" NOT EXISTS (SELECT 1 FROM {SIGNAL} o WHERE o.user_id = s.user_id AND NOT o.is_demo)))",
        "Only signals that were published as those of the demo are ever removed.",
        needs=NEEDS,
    ),
    Guard(
        "signal_keeps_its_rules",
        SIGNAL,
        "UPDATE",
        "NEW.rules {differs} OLD.rules OR NEW.is_demo {differs} OLD.is_demo"
        " OR NEW.rank_unit {differs} OLD.rank_unit OR OLD.fill_price IS NOT NULL"
        " AND (NEW.fill_price {differs} OLD.fill_price OR NEW.filled_at {differs} OLD.filled_at)",
        "A published signal keeps its rules and its fill, and is of the demo or not for ever.",
        needs=NEEDS,
    ),
    Guard(
        "publisher_is_of_the_demo_or_not",
        SIGNAL,
        "INSERT",
        f"NEW.is_demo <> (SELECT s.is_demo FROM {SIGNAL} s WHERE s.user_id = NEW.user_id"  # noqa: S608 - names of our own
        " AND s.is_demo IS NOT NULL LIMIT 1)",
        "All signals of a publisher are of the demo, or none is.",
        needs=NEEDS,
    ),
    Guard(
        "rules_begin_after_all_before",
        BEGUN,
        "INSERT",
        f"NEW.rules <> {RULES} OR EXISTS (SELECT 1 FROM {SIGNAL} s"  # noqa: S608 - names of our own
        " WHERE s.rules < NEW.rules AND NOT COALESCE(s.is_demo, FALSE) AND s.published_at > NEW.begun_at)",
        "Rules begin after all that was published by those of before.",
        needs=OF_BEGUN,
    ),
    is_not_replaced("rules_begun", BEGUN, "e.rules = NEW.rules", "Rules begin once.", OF_BEGUN),
    *(
        Guard(f"rules_begun_{name}", BEGUN, act, "", "Rules that have begun stay so.", needs=OF_BEGUN)
        for name, act in (("is_frozen", "UPDATE"), ("stays", "DELETE"))
    ),
)


ALL_GUARDS = (*GUARDS, *ORDER_GUARDS, *LOG_GUARDS)
KEPT_WHOLE = (SIGNAL, EVIDENCE, ENTRY, HEAD)
"""PostgreSQL's TRUNCATE passes by the triggers of rows; SQLite has no TRUNCATE."""


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


class OnSqlite:
    """A trigger holds its condition and its refusal itself."""

    recreates_tables = True
    columns = "SELECT t.name, c.name FROM sqlite_master t, PRAGMA_TABLE_INFO(t.name) c"
    standing = "SELECT sql FROM sqlite_master WHERE type = 'trigger'"
    drop = "DROP TRIGGER IF EXISTS {0.name}"

    # `new` and `e` are entries whose members are texts, `…_s` the same times as seconds.
    words: dict[str, Any] = {
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

    def triggers(self) -> list[Trigger]:
        return [self._of(guard) for guard in ALL_GUARDS]

    def _of(self, guard: Guard) -> Trigger:
        condition = guard.condition.format_map(self.words)
        when = f" WHEN {condition}" if condition else ""
        return Trigger(
            guard.name,
            guard.table,
            f"CREATE TRIGGER {guard.name} BEFORE {guard.act} ON {guard.table}{when}"
            f" BEGIN SELECT RAISE(ABORT, '{guard.refusal}'); END",
            needs=guard.needs,
        )

    def create(self, cursor: CursorWrapper, trigger: Trigger) -> None:
        cursor.execute(trigger.create)


class OnPostgresql:
    """A trigger calls a function of its own."""

    recreates_tables = False
    columns = (
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"
        " AND pg_table_is_visible(c.oid)"
    )
    standing = (
        "SELECT pg_get_triggerdef(t.oid, true) || p.prosrc FROM pg_trigger t"  # noqa: S608 - a text of our own
        " JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')"
        f" AND p.proconfig = ARRAY['search_path=' || {OWN_SCHEMA}]"
    )
    drop = "DROP TRIGGER IF EXISTS {0.name} ON {0.table}"
    words: dict[str, Any] = {
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

    def triggers(self) -> list[Trigger]:
        triggers = [self._of(guard) for guard in ALL_GUARDS if not guard.only_sqlite]
        whole = dict.fromkeys(KEPT_WHOLE) | LOG_TABLES | {BEGUN: OF_BEGUN}
        return [*triggers, *(self._against_truncate(table, needs) for table, needs in whole.items())]

    def _of(self, guard: Guard) -> Trigger:
        name, table = guard.name, guard.table
        condition = guard.condition.format_map(self.words) or "true"
        row = "OLD" if guard.act == "DELETE" else "NEW"
        return Trigger(
            name,
            table,
            f"CREATE TRIGGER {name} BEFORE {guard.act} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
            f" BEGIN IF {condition} THEN RAISE EXCEPTION '{guard.refusal}' USING ERRCODE = 'check_violation';"
            f" END IF; RETURN {row}; END ",
            guard.needs,
        )

    def _against_truncate(self, table: str, needs: tuple[str, str] | None) -> Trigger:
        name = f"{table}_is_kept"
        return Trigger(
            name,
            table,
            f"CREATE TRIGGER {name} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
            f" BEGIN RAISE EXCEPTION '{table} is never emptied.' USING ERRCODE = 'check_violation'; END ",
            needs,
        )

    def create(self, cursor: CursorWrapper, trigger: Trigger) -> None:
        cursor.execute(f"SELECT {OWN_SCHEMA}")
        cursor.execute(
            f"CREATE OR REPLACE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql"
            f" SET search_path = {cursor.fetchone()[0]} AS $${trigger.body}$$"
        )
        cursor.execute(trigger.create)


def kind_of(using: str) -> OnPostgresql | OnSqlite:
    return OnPostgresql() if connections[using].vendor == "postgresql" else OnSqlite()


def missing_triggers(using: str = "default") -> set[str]:
    """Triggers that are missing, disabled, or not what they should be."""
    kind = kind_of(using)
    standing = {definition for (definition,) in fetch(kind.standing, using=using)}
    there = columns_there(using)
    return {
        trigger.name
        for trigger in kind.triggers()
        if trigger.definition not in standing and (trigger.needs is None or trigger.needs in there)
    }


def columns_there(using: str) -> set[tuple[str, str]]:
    """Fewer if only earlier migrations are applied. Django would parse the definition of each table."""
    return set(fetch(kind_of(using).columns, using=using))


def has_tables(using: str) -> bool:
    """False before the first migration."""
    return set(KEPT_WHOLE) <= set(connections[using].introspection.table_names())


def put_up_triggers(using: str = "default", **_: Any) -> None:
    """Create the missing triggers, after each migrate."""
    names, kind = missing_triggers(using), kind_of(using)
    if not names or not has_tables(using):
        return
    with connections[using].cursor() as cursor:
        for trigger in kind.triggers():
            if trigger.name in names:
                cursor.execute(kind.drop.format(trigger))
                kind.create(cursor, trigger)


def take_down_triggers(using: str = "default") -> None:
    """For migrating backwards; `put_up_triggers` creates them again."""
    kind = kind_of(using)
    with connections[using].cursor() as cursor:
        for trigger in kind.triggers():
            cursor.execute(kind.drop.format(trigger))


def make_way(using: str = "default", plan: Sequence[object] = (), **_: Any) -> None:
    """Before each migrate that has something to do."""
    if plan and kind_of(using).recreates_tables:
        take_down_triggers(using)


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
