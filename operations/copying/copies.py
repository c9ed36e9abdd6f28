"""Backups, restores and moves of a database, each from one moment of it, while the service goes on."""

import hashlib
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.secrets import current_name
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from core.program import command
from market.store import make_months
from operations.ledger_log import lacking, unknown_log
from operations.void_keys import WAY_OUT, void_keys

from . import archive
from .archive import ArchiveReader, Manifest
from .stores import (
    NONE,
    Digest,
    Ending,
    Key,
    MigrationName,
    Refused,
    Say,
    Schema,
    Store,
    StoredTable,
    Unfinished,
    digest,
    fields_of,
    finish,
    found,
    greater,
    last_migrations,
    note,
    numbers_given,
    plain_json,
    quoted,
    schema_after,
    unknown_migrations,
)

CANDLES, LEDGER_HEAD = "market_candle", "signals_feed_ledgerhead"
# What the first entry names as the one before it.
EMPTY_LEDGER = (0, "0" * 64)
MINUTES = "timeframe = '1m'"
# A row of these lets its reader in as somebody else: sessions, keys of confirmation mails, and the cache,
# which has the login link of the demo's staff. In a backup they are empty.
LOGS_IN = frozenset(
    {
        *("django_session", "usersessions_usersession", "accounts_pagesession"),
        *("account_emailconfirmation", "accounts_attempt"),
    }
)


def default_file() -> Path:
    folder = Path(settings.VAR_DIR) / "backups"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"tickwire-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"


def back_up(store: Store, path: Path, say: Say) -> Manifest:
    with archive.writer(path) as written, store.snapshot():
        schema = schema_of(store)
        contents = []
        for table in schema.tables:
            contents.append(written.add(table, () if table.name in LOGS_IN else store.read(table)))
            if contents[-1].rows:
                say(f"{contents[-1].rows:>12,}  {table.name}")
        manifest = Manifest(
            format=archive.FORMAT,
            made_at=datetime.now(UTC),
            vendor=store.vendor,
            migrations=schema.migrations,
            contents=tuple(contents),
            minute_months=tuple(months_of(store, schema.tables)),
            ledger=ledger_head(store),
            pepper=current_name(),
            numbers=store.numbers(),
        )
        written.finish(manifest)
    return manifest


def schema_of(store: Store) -> Schema:
    """Of a database that is whole and no newer than this version."""
    names = store.names()
    if UNFINISHED in names:
        raise Refused(
            "The database is incomplete: a restore or a move into it has not finished. Repeat that first."
        )
    if "django_migrations" not in names:
        raise Refused("The database is empty.")
    schema = schema_after(applied(store))
    if missing := sorted({table.name for table in schema.tables} - names):
        raise Refused(f"The database has no table {missing[0]}, which its migrations made.")
    return schema


def applied(store: Store) -> set[tuple[str, str]]:
    """What was migrated, none of it by a newer version."""
    found = {(str(app), str(name)) for app, name in store.ask("SELECT app, name FROM django_migrations")}
    if unknown := unknown_migrations(found):
        raise Refused(
            f"The database is newer than this version: it has {unknown[0][0]}.{unknown[0][1]}, which is"
            " unknown here. Take the version that runs on it."
        )
    return found


def months_of(store: Store, tables: tuple[StoredTable, ...]) -> list[str]:
    candles = [table for table in tables if table.name == CANDLES]
    return store.months(candles[0], "opened_at", MINUTES) if candles else []


def ledger_head(store: Store) -> tuple[int, str]:
    found = store.ask(f"SELECT position, hash FROM {LEDGER_HEAD}") if LEDGER_HEAD in store.names() else []  # noqa: S608 - a name of our own
    return (int(str(found[0][0])), str(found[0][1])) if found else EMPTY_LEDGER


def write_secrets(path: Path) -> None:
    """As lines that a shell reads."""
    pepper, former = settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS
    if settings.SECRET_KEY in pepper:
        # Made from it, where none was set. Production refuses that, but opens what was made with it.
        pepper, former = token_urlsafe(48), [pepper, *former]
    secrets = {
        "SECRET_KEY": settings.SECRET_KEY,
        "KEY_PEPPER": pepper,
        "SECRET_KEY_FALLBACKS": ",".join(settings.SECRET_KEY_FALLBACKS),
        "KEY_PEPPER_FALLBACKS": ",".join(former),
    }
    with archive.new_file(path) as draft:
        draft.write_text(
            "".join(f"{name}={shlex.quote(value)}\n" for name, value in secrets.items() if value)
        )


# The tables of a database that is to be filled: whether they are empty, and how they are made anew.
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


# Whether a process still writes to a database: an engine beats, and each process reports every 5 s.
# Processes report every five seconds, and the busiest machine is not this late.
WATCHED_FOR_S, LOOK_EVERY_S = 12.0, 0.5
ENGINE, REPORTS = "market_enginestate", "status_processreport"


def refuse_if_in_use(store: Store, whose: str, say: Callable[[str], None]) -> None:
    if not was_in_use(store):
        return
    say(f"Looking for {WATCHED_FOR_S:.0f} s whether anything still writes to {whose}.")
    first, ends_at = signs_of_life(store), time.monotonic() + WATCHED_FOR_S
    while time.monotonic() < ends_at:
        time.sleep(LOOK_EVERY_S)
        if signs_of_life(store) != first:
            raise Refused(f"A service or an engine runs on {whose}. Stop all of its processes first.")


def was_in_use(store: Store) -> bool:
    """Within the last minute, by the clock of the database; only then it may be now."""
    names = store.names()
    recent = 0
    if ENGINE in names:
        held = f"SELECT count(*) FROM {ENGINE} WHERE writer <> '' AND beat_at > {store.a_minute_ago}"  # noqa: S608 - names of our own
        recent += int(str(store.ask(held)[0][0]))
    if REPORTS in names:
        reports = f"SELECT count(*) FROM {REPORTS} WHERE at > {store.a_minute_ago}"  # noqa: S608 - names of our own
        recent += int(str(store.ask(reports)[0][0]))
    return recent > 0


def signs_of_life(store: Store) -> list[list[tuple[object, ...]]]:
    names = store.names()
    questions = {
        ENGINE: f"SELECT writer, beats FROM {ENGINE}",  # noqa: S608 - names of our own
        # One that reports anew changes its row; rows that only grow old are taken away.
        REPORTS: f"SELECT max(at) FROM {REPORTS}",  # noqa: S608 - names of our own
    }
    return [store.ask(question) for table, question in questions.items() if table in names]


# Puts a backup into a database: all of it or nothing, and nothing stale is taken for new afterwards.
EVENTS = ControlEvent._meta.db_table
# Beside it one for each microsecond, which is more than there are events: what was told after the same backup
# was restored before lies below.
POSITIONS_APART = 1_000_000


def refuse_newer(manifest: Manifest) -> None:
    if unknown := unknown_migrations(manifest.migrations):
        raise Refused(
            f"The backup was made by a newer version: it has {unknown[0][0]}.{unknown[0][1]}, which is"
            " unknown here. Restore it with that version."
        )


def restore(archive: ArchiveReader, store: Store, *, replace: bool, despite_ledger: bool, say: Say) -> None:
    manifest = archive.manifest
    refuse_newer(manifest)
    begun = found(store)
    is_begun = begun is not None and not begun.source
    if not (replace or is_begun) and (filled := filled_tables(store)):
        raise Refused(
            f"The database is not empty: {filled[0]} has rows. --replace deletes everything in it first."
        )
    # They may belong to rows that are younger than the backup.
    numbers = greater(manifest.numbers, numbers_given(store))
    make_schema(store, manifest)
    make_months_named(store, manifest.minute_months)
    connection.close()
    with store.writing():
        store.empty(each.table for each in manifest.contents)
        load(archive, store, say)
        begin_anew(store, manifest, numbers)
        note(store, Unfinished(numbers=numbers))
    finish(store, Ending(numbers, manifest.ledger, despite_ledger), say)


def make_schema(store: Store, manifest: Manifest) -> None:
    """As it was when the backup was made; the service refuses to start on what is not finished."""
    names, wanted = store.names(), set(manifest.migrations)
    there = (
        set(store.ask("SELECT app, name FROM django_migrations")) if "django_migrations" in names else set()
    )
    if there == wanted and UNFINISHED not in names:
        return
    make_tables_anew(store, last_migrations(wanted))


def load(archive: ArchiveReader, store: Store, say: Say) -> None:
    done, began_at = 0, time.monotonic()
    for each in archive.manifest.contents:
        store.write(each.table, archive.lines(each.table))
        if digest(store.read(each.table)) != Digest(each.rows, each.sha256):
            raise Refused(f"{each.table.name} did not arrive as it was written. Nothing was changed.")
        done += each.rows
        if each.rows:
            rate = done / max(time.monotonic() - began_at, 0.001)
            total = f"{done:,} of {archive.manifest.rows:,}, {rate:,.0f} rows/s"
            say(f"{each.rows:>12,}  {each.table.name}  ({total})")


def begin_anew(store: Store, manifest: Manifest, numbers: Mapping[str, int]) -> None:
    """Numbers that were given after the backup will be given again, to something else: so in another epoch,
    and events after positions that were given out once. No client goes on from one of them unnoticed."""
    epoch = uuid.uuid4().hex[:12]
    store.tell(f"UPDATE market_enginestate SET writer = '', epoch = '{epoch}'")  # noqa: S608 - made of digits
    events = next(each.table for each in manifest.contents if each.table.name == EVENTS)
    last = int(str(store.ask(f"SELECT coalesce(max(position), 0) FROM {EVENTS}")[0][0]))  # noqa: S608 - a name of our own
    now = datetime.now(UTC)
    age = max((now - manifest.made_at) // timedelta(microseconds=1), 0)
    given = max(last, numbers.get(EVENTS, 0))
    values = {
        "position": str(given + POSITIONS_APART + age),
        "kind": EventKind.DATABASE_RESTORED.value,
        "facts": plain_json(f'{{"after": {last}}}'),
        "by": "",
        "created_at": f"{now:%Y-%m-%d %H:%M:%S.%f}",
    }
    line = "\t".join(values.get(column.name, NONE) for column in events.columns)
    store.write(events, [f"{line}\n".encode()])


def warnings(manifest: Manifest) -> Iterator[str]:
    if void := void_keys(manifest.pepper):
        yield f"{void} {WAY_OUT}"
    if says := unknown_log() or lacking():
        yield f"{says} `{command('doctor')}` says what to do."
    moment = f"{manifest.made_at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"It is as of {moment}: what was revoked or changed later is as it was then."


# Carries all rows from one database into another, of either kind, and goes on where it was killed.
AT_ONCE = 50_000


def move(source: Store, target: Store, name: str, *, anew: bool, despite_ledger: bool, say: Say) -> None:
    """`name` tells this source from others."""
    schema = schema_of(source)
    refuse_unready(source, schema)
    progress = begin(source, target, schema, hashlib.sha256(name.encode()).hexdigest(), anew=anew)
    say("The rules by which the database refuses changes are off while rows are written, and on again after.")
    with source.snapshot():
        carry(source, target, schema, progress, say)
    say("Comparing both, table by table.")
    with source.snapshot(), target.snapshot():
        compare(source, target, schema)
        numbers = greater(progress.numbers, source.numbers())
        ending = Ending(numbers, ledger_head(source), despite_ledger)
    finish(target, ending, say)


def compare(source: Store, target: Store, schema: Schema) -> None:
    for table in schema.tables:
        if digest(source.read(table)) != digest(target.read(table)):
            raise Refused(
                f"{table.name} is not the same in both: something wrote to one of them in the meantime. "
                "Stop it,"
                " and begin again with --anew."
            )


def refuse_unready(source: Store, schema: Schema) -> None:
    graph = MigrationExecutor(connection).loader.graph
    if behind := sorted(graph.nodes.keys() - set(schema.migrations)):
        raise Refused(
            f"The source is behind this version: it lacks {behind[0][0]}.{behind[0][1]}. Run"
            f" `{command('migrate')}` on it first."
        )
    writers = source.ask("SELECT writer FROM market_enginestate WHERE writer <> ''")
    if writers:
        raise Refused(
            "The engine of the source was not stopped properly, so its last ticks may only be in its journal."
            " Start the service on the source once more, stop it with Ctrl-C or SIGTERM, and try again."
        )


def begin(source: Store, target: Store, schema: Schema, name: str, *, anew: bool) -> Unfinished:
    begun = found(target)
    # Without a source only tables were made, and all of them are made again.
    if begun and begun.source and not anew:
        if begun.source == name:
            return begun
        raise Refused(
            "The target is a part of another copy that has not ended. Finish that, or give --anew to"
            " delete it."
        )
    if not anew and (filled := filled_tables(target)):
        raise Refused(f"The target is not empty: {filled[0]} has rows. Name an empty database.")
    if anew and begun is None and filled_tables(target):
        raise Refused("--anew deletes only what a move left unfinished, and the target is whole.")
    numbers = make_tables_anew(target, MigrationExecutor(connection).loader.graph.leaf_nodes())
    make_months_named(target, months_of(source, schema.tables))
    connection.close()
    progress = Unfinished(name, numbers)
    with target.writing():
        target.empty(schema.tables)
        note(target, progress)
    return progress


def carry(source: Store, target: Store, schema: Schema, progress: Unfinished, say: Say) -> None:
    counts = {table.name: source.count(table) for table in schema.tables}
    total, before, began_at = sum(counts.values()), sum(progress.done.values()), time.monotonic()
    if before:
        say(f"Going on after {before:,} of {total:,} rows.")
    for table in schema.tables:
        while lines := list(source.read(table, progress.last.get(table.name), AT_ONCE)):
            with target.writing():
                target.write(table, lines)
                progress.last[table.name] = key_of(table, lines[-1])
                progress.done[table.name] = progress.done.get(table.name, 0) + len(lines)
                note(target, progress)
            done = sum(progress.done.values())
            rate = (done - before) / max(time.monotonic() - began_at, 0.001)
            say(f"{done:>12,} of {total:,}  {table.name}  {rate:,.0f} rows/s")
            if len(lines) < AT_ONCE:
                break


def key_of(table: StoredTable, line: bytes) -> Key:
    at = next(at for at, column in enumerate(table.columns) if column.name == table.key)
    return fields_of(line[:-1].decode())[at]
