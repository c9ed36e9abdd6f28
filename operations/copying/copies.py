"""Backups, restores and moves of a database, each from one moment of it, while the service goes on."""

import hashlib
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from secrets import token_urlsafe

import msgspec
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.models import Account
from accounts.secrets import current_name
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from core.program import command
from market.store import market_tables
from operations.ledger_log import lacking, unknown_log
from operations.void_keys import WAY_OUT, void_keys
from signals_feed.models import Announcement

from . import archive
from .archive import ArchiveReader, Manifest
from .databases import Key, Store
from .tables import (
    NONE,
    Digest,
    MigrationName,
    Schema,
    digest,
    fields_of,
    last_migrations,
    plain_json,
    quoted,
    schema_after,
    unknown_migrations,
)

Say = Callable[[str], None]
MIGRATIONS, CANDLES, EVENTS = "django_migrations", "market_candle", ControlEvent._meta.db_table
ENGINE, REPORTS, LEDGER_HEAD = "market_enginestate", "status_processreport", "signals_feed_ledgerhead"
# What the first entry names as the one before it.
EMPTY_LEDGER = (0, "0" * 64)
# Their rows would let a reader log in as another person: sessions, keys of confirmation mails, and the cache,
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
    with archive.new_archive(path) as packed, store.snapshot():
        schema = schema_of(store)
        contents = []
        for table in schema.tables:
            contents.append(archive.add(packed, table, () if table.name in LOGS_IN else store.read(table)))
            if contents[-1].rows:
                say(f"{contents[-1].rows:>12,}  {table.name}")
        manifest = Manifest(
            format=archive.FORMAT,
            made_at=datetime.now(UTC),
            vendor=store.vendor,
            migrations=schema.migrations,
            contents=tuple(contents),
            minute_months=tuple(minute_months(store, schema)),
            ledger=ledger_head(store),
            pepper=current_name(),
            numbers=store.numbers(),
        )
        archive.finish(packed, manifest)
    return manifest


def schema_of(store: Store) -> Schema:
    """Of a database that is whole and no newer than this version."""
    names = store.names()
    if UNFINISHED in names:
        raise CommandError(
            "The database is incomplete: a restore or a move into it has not finished. Repeat that first."
        )
    if MIGRATIONS not in names:
        raise CommandError("The database is empty.")
    if unknown := unknown_migrations(found := applied(store)):
        raise CommandError(
            f"The database is newer than this version: it has {unknown[0][0]}.{unknown[0][1]}, which is"
            " unknown here. Take the version that runs on it."
        )
    schema = schema_after(found)
    if missing := sorted({table.name for table in schema.tables} - names):
        raise CommandError(f"The database has no table {missing[0]}, which its migrations made.")
    return schema


def applied(store: Store) -> set[tuple[str, str]]:
    return set(store.ask(f"SELECT app, name FROM {MIGRATIONS}")) if MIGRATIONS in store.names() else set()  # noqa: S608 - a name of our own


def minute_months(store: Store, schema: Schema) -> list[str]:
    if CANDLES not in {table.name for table in schema.tables}:
        return []
    month = store.month_of.format("opened_at")
    minutes = f"SELECT DISTINCT {month} FROM {CANDLES} WHERE timeframe = '1m' ORDER BY 1"  # noqa: S608 - names of our own
    return [name for (name,) in store.ask(minutes)]


def ledger_head(store: Store) -> tuple[int, str]:
    found = store.ask(f"SELECT position, hash FROM {LEDGER_HEAD}") if LEDGER_HEAD in store.names() else []  # noqa: S608 - a name of our own
    return (found[0][0], found[0][1]) if found else EMPTY_LEDGER


def write_secrets(path: Path) -> None:
    """As lines that a shell reads."""
    pepper, former = settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS
    if settings.SECRET_KEY in pepper:
        # Derived from it, where none was set. Production does not accept that one, but opens what it sealed.
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


# The mark of a database from the first change until a copy is complete and verified. No service starts on a
# marked one.
DESPITE_LEDGER = "--despite-ledger"
# Numbers of rows that outlive them: no foreign key holds the rows there.
NAMED_ELSEWHERE = (
    (Account, ControlEvent, "account_id"),
    (ControlEvent, Announcement, "position"),
)


class Unfinished(msgspec.Struct):
    source: str = ""
    """Of a move. A restore has none, because it starts over."""
    numbers: dict[str, int] = {}
    """The last that each table gave to a row before its rows were deleted."""
    done: dict[str, int] = {}
    """Rows of each table."""
    last: dict[str, Key] = {}


def find_unfinished(store: Store) -> Unfinished | None:
    if UNFINISHED not in store.names():
        return None
    rows = store.ask(f"SELECT what FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    return msgspec.json.decode(rows[0][0], type=Unfinished) if rows else Unfinished()


def note(store: Store, unfinished: Unfinished) -> None:
    """In the transaction of what it describes."""
    text = msgspec.json.encode(unfinished).decode().replace("'", "''")
    store.tell(f"CREATE TABLE IF NOT EXISTS {UNFINISHED} (what text)")
    store.tell(f"DELETE FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    store.tell(f"INSERT INTO {UNFINISHED} VALUES ('{text}')")  # noqa: S608 - quoted


def numbers_given(store: Store) -> dict[str, int]:
    """By the database as it is, and as it was before its rows were deleted."""
    unfinished = find_unfinished(store)
    return greatest(store.numbers(), unfinished.numbers if unfinished else {})


def greatest(*given: Mapping[str, int]) -> dict[str, int]:
    return {table: max(each.get(table, 0) for each in given) for table in set().union(*given)}


def finish(
    store: Store, numbers: Mapping[str, int], head: tuple[int, str], say: Say, *, despite_ledger: bool
) -> None:
    """Can be repeated. `numbers` were given here, or where the rows come from; `head` is its ledger's."""
    store.number_after(numbers)
    say("Migrating to this version.")
    # It also creates the triggers that guard the ledger.
    call_command("migrate", verbosity=0, interactive=False)
    # The columns that name them may be new.
    store.number_after(
        {
            model._meta.db_table: store.ask(f"SELECT max({column}) FROM {naming._meta.db_table}")[0][0] or 0  # noqa: S608 - names of our own
            for model, naming, column in NAMED_ELSEWHERE
        }
    )
    check_ledger(head, say, despite_ledger=despite_ledger)
    store.tell(f"DROP TABLE {UNFINISHED}")


def check_ledger(head: tuple[int, str], say: Say, *, despite_ledger: bool) -> None:
    position, hash_ = head
    noted, printed = [f"--head={position}:{hash_}"] if position else [], StringIO()
    try:
        call_command("verify_ledger", *noted, stdout=printed)
    except CommandError as fault:
        if not despite_ledger:
            way_out = f"Nothing starts on this copy, unless {DESPITE_LEDGER} finishes it as it is."
            raise CommandError(f"{fault} {way_out}") from None
        say(str(fault))
    else:
        say(printed.getvalue().strip())


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
    """Tables with rows from people or a market."""
    names = sorted(store.names() - {MIGRATIONS, "sqlite_sequence", UNFINISHED, *MADE_BY_MIGRATING})
    return [name for name in names if store.ask(f"SELECT 1 FROM {quoted(name)} LIMIT 1")]  # noqa: S608 - names of the database


def make_months_named(store: Store, names: Iterable[str]) -> None:
    """Before their candles, which would have to be moved into them."""
    market_tables().make_months(datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC) for name in names)


def make_tables_again(store: Store, migrations: list[MigrationName]) -> dict[str, int]:
    """Drops all tables, and the functions of their triggers, but not the mark. Returns the last number that
    each of the former tables gave to a row."""
    numbers, is_sqlite = numbers_given(store), store.vendor == "sqlite"
    names = sorted(store.names() - {UNFINISHED, "sqlite_sequence"})
    if is_sqlite:
        store.tell("PRAGMA foreign_keys = OFF")
    store.tell("BEGIN")
    note(store, Unfinished(numbers=numbers))
    for name in names:
        store.tell(f"DROP TABLE IF EXISTS {quoted(name)}{'' if is_sqlite else ' CASCADE'}")
    for (function,) in () if is_sqlite else store.ask(FUNCTIONS):
        store.tell(f"DROP FUNCTION {function}")
    store.tell("COMMIT")
    MigrationExecutor(connection).migrate(migrations)
    return numbers


# What changes while a process still writes to a database: an engine counts its beats, and each process
# reports every five seconds; the busiest machine is not a minute late.
SIGNS_OF_LIFE = {
    ENGINE: f"SELECT writer, beats FROM {ENGINE} WHERE writer <> '' AND beat_at",  # noqa: S608 - a name of our own
    REPORTS: f"SELECT at FROM {REPORTS} WHERE at",  # noqa: S608 - a name of our own
}
WATCHED_FOR_S, LOOK_EVERY_S = 12.0, 0.5


def refuse_if_in_use(store: Store, whose: str, say: Say) -> None:
    if not (first := signs_of_life(store)):
        return
    say(f"Looking for {WATCHED_FOR_S:.0f} s whether anything still writes to {whose}.")
    ends_at = time.monotonic() + WATCHED_FOR_S
    while time.monotonic() < ends_at:
        time.sleep(LOOK_EVERY_S)
        if signs_of_life(store) - first:
            raise CommandError(f"A service or an engine runs on {whose}. Stop all of its processes first.")


def signs_of_life(store: Store) -> set[tuple[object, ...]]:
    """Of the last minute, by the clock of the database."""
    names = store.names()
    signs = [f"{sign} > {store.a_minute_ago}" for table, sign in SIGNS_OF_LIFE.items() if table in names]
    return {row for sign in signs for row in store.ask(sign)}


# A restore puts all of a backup into a database or nothing, and nothing stale is taken for new afterwards.
# Added to this is one for each microsecond since the backup, which is more than there are events: so a second
# restore of the same backup announces itself above all events that followed the first.
POSITIONS_APART = 1_000_000


def restore(backup: ArchiveReader, store: Store, *, replace: bool, despite_ledger: bool, say: Say) -> None:
    manifest = backup.manifest
    if unknown := unknown_migrations(manifest.migrations):
        raise CommandError(
            f"The backup was made by a newer version: it has {unknown[0][0]}.{unknown[0][1]}, which is"
            " unknown here. Restore it with that version."
        )
    unfinished = find_unfinished(store)
    is_continued = unfinished is not None and not unfinished.source
    if not (replace or is_continued) and (filled := filled_tables(store)):
        raise CommandError(
            f"The database is not empty: {filled[0]} has rows. --replace deletes everything in it first."
        )
    # These numbers may belong to rows that are younger than the backup.
    numbers = greatest(manifest.numbers, numbers_given(store))
    if unfinished is not None or applied(store) != set(manifest.migrations):
        make_tables_again(store, last_migrations(manifest.migrations))
    make_months_named(store, manifest.minute_months)
    connection.close()
    with store.writing():
        store.empty(each.table for each in manifest.contents)
        load(backup, store, say)
        announce_restore(store, manifest, numbers)
        note(store, Unfinished(numbers=numbers))
    finish(store, numbers, manifest.ledger, say, despite_ledger=despite_ledger)


def load(backup: ArchiveReader, store: Store, say: Say) -> None:
    done, began_at = 0, time.monotonic()
    for each in backup.manifest.contents:
        store.write(each.table, backup.lines(each.table))
        if digest(store.read(each.table)) != Digest(each.rows, each.sha256):
            raise CommandError(f"{each.table.name} did not arrive as it was written. Nothing was changed.")
        done += each.rows
        if each.rows:
            rate = done / max(time.monotonic() - began_at, 0.001)
            total = f"{done:,} of {backup.manifest.rows:,}, {rate:,.0f} rows/s"
            say(f"{each.rows:>12,}  {each.table.name}  ({total})")


def announce_restore(store: Store, manifest: Manifest, numbers: Mapping[str, int]) -> None:
    """Numbers given after the backup will be given again, to something else. So the epoch is another, and
    events continue after all positions ever given: no client continues from one of them unnoticed."""
    epoch = uuid.uuid4().hex[:12]
    store.tell(f"UPDATE {ENGINE} SET writer = '', epoch = '{epoch}'")  # noqa: S608 - made of digits
    events = next(each.table for each in manifest.contents if each.table.name == EVENTS)
    last = store.ask(f"SELECT max(position) FROM {EVENTS}")[0][0] or 0  # noqa: S608 - a name of our own
    now = datetime.now(UTC)
    age = max((now - manifest.made_at) // timedelta(microseconds=1), 0)
    values = {
        "position": str(max(last, numbers.get(EVENTS, 0)) + POSITIONS_APART + age),
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


# A move copies all rows from one database into another, of either kind, and continues where it was killed.
AT_ONCE = 50_000


def move(
    source: Store, target: Store, name: str, *, start_over: bool, despite_ledger: bool, say: Say
) -> None:
    """`name` tells this source from others."""
    schema = schema_of(source)
    refuse_unready(source, schema)
    progress = begin(source, target, schema, hashlib.sha256(name.encode()).hexdigest(), start_over=start_over)
    say("The rules by which the database refuses changes are off while rows are written, and on again after.")
    with source.snapshot():
        carry(source, target, schema, progress, say)
    say("Comparing both, table by table.")
    with source.snapshot(), target.snapshot():
        for table in schema.tables:
            if digest(source.read(table)) != digest(target.read(table)):
                raise CommandError(
                    f"{table.name} is not the same in both: something wrote to one of them in the meantime. "
                    "Stop it, and begin again with --anew."
                )
        numbers, head = greatest(progress.numbers, source.numbers()), ledger_head(source)
    finish(target, numbers, head, say, despite_ledger=despite_ledger)


def refuse_unready(source: Store, schema: Schema) -> None:
    graph = MigrationExecutor(connection).loader.graph
    if behind := sorted(graph.nodes.keys() - set(schema.migrations)):
        raise CommandError(
            f"The source is behind this version: it lacks {behind[0][0]}.{behind[0][1]}. Run"
            f" `{command('migrate')}` on it first."
        )
    if source.ask(f"SELECT 1 FROM {ENGINE} WHERE writer <> ''"):  # noqa: S608 - a name of our own
        raise CommandError(
            "The engine of the source was not stopped properly, so its last ticks may only be in its journal."
            " Start the service on the source once more, stop it with Ctrl-C or SIGTERM, and try again."
        )


def begin(source: Store, target: Store, schema: Schema, name: str, *, start_over: bool) -> Unfinished:
    unfinished = find_unfinished(target)
    # Without a source only tables were made, and all of them are made again.
    if unfinished and unfinished.source and not start_over:
        if unfinished.source == name:
            return unfinished
        raise CommandError(
            "The target is a part of another copy that has not ended. Finish that, or give --anew to"
            " delete it."
        )
    if (filled := filled_tables(target)) and not start_over:
        raise CommandError(f"The target is not empty: {filled[0]} has rows. Name an empty database.")
    if filled and unfinished is None:
        raise CommandError("--anew deletes only what a move left unfinished, and the target is whole.")
    numbers = make_tables_again(target, MigrationExecutor(connection).loader.graph.leaf_nodes())
    make_months_named(target, minute_months(source, schema))
    connection.close()
    progress = Unfinished(name, numbers)
    with target.writing():
        target.empty(schema.tables)
        note(target, progress)
    return progress


def carry(source: Store, target: Store, schema: Schema, progress: Unfinished, say: Say) -> None:
    total = sum(source.ask(f"SELECT count(*) FROM {quoted(table.name)}")[0][0] for table in schema.tables)  # noqa: S608 - names of our own
    before, began_at = sum(progress.done.values()), time.monotonic()
    if before:
        say(f"Going on after {before:,} of {total:,} rows.")
    for table in schema.tables:
        while lines := list(source.read(table, progress.last.get(table.name), AT_ONCE)):
            with target.writing():
                target.write(table, lines)
                progress.last[table.name] = fields_of(lines[-1][:-1].decode())[table.key_at]
                progress.done[table.name] = progress.done.get(table.name, 0) + len(lines)
                note(target, progress)
            done = sum(progress.done.values())
            rate = (done - before) / max(time.monotonic() - began_at, 0.001)
            say(f"{done:>12,} of {total:,}  {table.name}  {rate:,.0f} rows/s")
            if len(lines) < AT_ONCE:
                break
