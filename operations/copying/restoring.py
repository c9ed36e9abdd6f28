"""Puts a backup into a database: all of it or nothing, and nothing stale is taken for new afterwards."""

import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from django.db import connection

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from core.program.commands import command
from operations.ledger_log import lacking, unknown_log
from operations.void_keys import WAY_OUT, void_keys

from .archive import ArchiveReader, Manifest
from .schemas import filled_tables, make_months_named, make_tables_anew
from .stores import Digest, Refused, Store, digest
from .tables import last_migrations, unknown_migrations
from .text import NONE, plain_json
from .unfinished import Ending, Say, Unfinished, finish, found, greater, note, numbers_given

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
