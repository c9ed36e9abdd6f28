"""Puts a backup into a database: all of it or nothing, and nothing stale is taken for new afterwards."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from market.store import make_months

from .archive import ArchiveReader, Manifest
from .backing_up import pepper_mark
from .schemas import drop_everything
from .stores import Digest, Refused, Store, digest, quoted
from .tables import StoredTable, last_migrations, unknown_migrations
from .text import NONE, plain_json

Say = Callable[[str], None]
# Rows that migrating makes, and those that a service leaves behind at once.
MADE_BY_MIGRATING = {
    *("django_content_type", "auth_permission", "accounts_tier", "accounts_attempt"),
    *("market_enginestate", "status_processreport"),
}
POSITIONS_APART = 1_000_000


def refuse_newer(manifest: Manifest) -> None:
    if unknown := unknown_migrations(manifest.migrations):
        raise Refused(
            f"The backup was made by a newer version: it has {unknown[0][0]}.{unknown[0][1]}, which is"
            " unknown here. Restore it with that version."
        )


def restore(archive: ArchiveReader, store: Store, *, replace: bool, say: Say) -> None:
    manifest = archive.manifest
    refuse_newer(manifest)
    if not replace and (filled := filled_tables(store)):
        raise Refused(
            f"The database is not empty: {filled[0]} has rows. --replace deletes everything in it first."
        )
    make_schema(store, manifest)
    make_months_named(store, manifest.minute_months)
    connection.close()
    with store.writing():
        store.empty(each.table for each in manifest.contents)
        load(archive, store, say)
        begin_anew(store, [each.table for each in manifest.contents])
        store.tell(f"DROP TABLE IF EXISTS {UNFINISHED}")


def filled_tables(store: Store) -> list[str]:
    """What a person or a market has put there."""
    kept = {"django_migrations", "sqlite_sequence", UNFINISHED, *MADE_BY_MIGRATING}
    return [
        name
        for name in sorted(store.names() - kept)
        if store.ask(f"SELECT 1 FROM {quoted(name)} LIMIT 1")  # noqa: S608 - names of the database
    ]


def make_schema(store: Store, manifest: Manifest) -> None:
    """As it was when the backup was made; the service refuses to start on what is not finished."""
    names, wanted = store.names(), set(manifest.migrations)
    there = (
        set(store.ask("SELECT app, name FROM django_migrations")) if "django_migrations" in names else set()
    )
    if there == wanted and UNFINISHED not in names:
        return
    drop_everything(store)
    executor = MigrationExecutor(connection)
    executor.migrate(last_migrations(wanted))


def make_months_named(store: Store, names: Iterable[str]) -> None:
    """Before their candles, which would have to be moved into them."""
    if store.vendor == "postgresql":
        make_months(datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC) for name in names)


def load(archive: ArchiveReader, store: Store, say: Say) -> None:
    done, began_at = 0, time.monotonic()
    for each in archive.manifest.contents:
        store.write(each.table, archive.lines(each.table))
        if digest(store.read(each.table)) != Digest(each.rows, each.sha256):
            raise Refused(f"{each.table.name} did not arrive as it was written. Nothing was changed.")
        store.number_on(each.table)
        done += each.rows
        if each.rows:
            rate = done / max(time.monotonic() - began_at, 0.001)
            total = f"{done:,} of {archive.manifest.rows:,}, {rate:,.0f} rows/s"
            say(f"{each.rows:>12,}  {each.table.name}  ({total})")


def begin_anew(store: Store, tables: Iterable[StoredTable]) -> None:
    """Numbers that were given after the backup will be given again, to something else: so in another epoch,
    and events after positions that were given out once. No client goes on from one of them unnoticed."""
    epoch = uuid.uuid4().hex[:12]
    store.tell(f"UPDATE market_enginestate SET writer = '', epoch = '{epoch}'")  # noqa: S608 - made of digits
    events = next(table for table in tables if table.name == ControlEvent._meta.db_table)
    last = int(str(store.ask(f"SELECT coalesce(max(position), 0) FROM {events.name}")[0][0]))  # noqa: S608 - a name of our own
    values = {
        "position": str(last + POSITIONS_APART),
        "kind": EventKind.DATABASE_RESTORED.value,
        "facts": plain_json(f'{{"after": {last}}}'),
        "by": "",
        "created_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}",
    }
    line = "\t".join(values.get(column.name, NONE) for column in events.columns)
    store.write(events, [f"{line}\n".encode()])
    store.number_on(events)


def bring_up_to_date(say: Say) -> None:
    say("Migrating to this version.")
    call_command("migrate", verbosity=0, interactive=False)


def warnings(manifest: Manifest) -> Iterator[str]:
    known = map(pepper_mark, (settings.KEY_PEPPER, *settings.KEY_PEPPER_FALLBACKS))
    if manifest.pepper_mark not in known:
        yield (
            "KEY_PEPPER is not the one under which this backup was made: no API key, source or second factor"
            " in it will be recognised. Put back the secrets of that installation."
        )
    moment = f"{manifest.made_at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"It is as of {moment}: what was revoked or changed later is as it was then."
