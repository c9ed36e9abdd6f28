"""Writes a database into a file, from one moment of it, while the service goes on."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_urlsafe

from django.conf import settings

from accounts.peppers import current_name
from core.process import UNFINISHED

from . import archive
from .archive import Manifest
from .stores import Refused, Store
from .tables import Schema, StoredTable, schema_after, unknown_migrations
from .unfinished import Say

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
