"""Everything goes from one database into another, whichever they are, and a kill costs nothing."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from accounts.models import ApiKey
from core.process import UNFINISHED, refuse_unfinished
from market.models import Candle
from operations.copying import copies
from operations.copying.archive import ArchiveReader, Contents
from operations.copying.copies import filled_tables
from operations.copying.databases import open_url
from operations.copying.tables import column_of, digest, last_migrations, schema_after
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.factories import make_candle, make_user
from tests.market.postgresql import in_place

from .conftest import KINDS, run

pytestmark = pytest.mark.served
New = Callable[..., str]


class Killed(BaseException):
    pass


@pytest.fixture
def move() -> Callable[..., str]:
    def carry(source: str, target: str, *words: str) -> str:
        with in_place(target):
            return run("move", source, target, "--on-target", *words)

    return carry


def rows_of(url: str) -> dict[str, Any]:
    with closing(open_url(url)) as store, store.snapshot():
        return {table.name: digest(store.read(table)) for table in schema_after(all_migrations()).tables}


def contents(path: Path) -> dict[str, Contents]:
    reader = ArchiveReader(path)
    reader.close()
    return {each.table.name: each for each in reader.manifest.contents}


@contextmanager
def restored(new_database: New, kind: str, path: Path, *words: str) -> Iterator[None]:
    with in_place(new_database(kind)):
        run("restore", path, *words)
        yield


@pytest.mark.parametrize(("of", "to"), [KINDS, KINDS[::-1]])
def test_every_row_arrives_as_it_was(
    of: str, to: str, filled: Callable[[str], str], new_database: New, move: Callable[..., str]
) -> None:
    source, target = filled(of), new_database(to, is_migrated=False)
    said = move(source, target)
    assert "rows/s" in said
    assert "3 entries hold" in said
    assert rows_of(target) == rows_of(source)
    with in_place(target):
        assert verify().fault == ""
        assert UNFINISHED not in connection.introspection.table_names()
        # The second was somebody who is gone.
        assert make_user("next").pk > 2
        # It is read by Django as it was written there.
        assert Candle.objects.get(close=Decimal("9999999.99999999")).volume == Decimal("1234567.12345678")


@pytest.mark.parametrize(("of", "to"), [KINDS, KINDS[::-1]])
def test_a_killed_move_goes_on(
    of: str,
    to: str,
    filled: Callable[[str], str],
    new_database: New,
    move: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = filled(of), new_database(to, is_migrated=False)
    monkeypatch.setattr(copies, "AT_ONCE", 2)
    note, notes = copies.note, 0

    def note_and_die(*words: Any) -> None:
        nonlocal notes
        notes += 1
        # The rows of this turn are written, and go with its transaction.
        if notes == 40:
            raise Killed
        note(*words)

    with monkeypatch.context() as patched:
        patched.setattr(copies, "note", note_and_die)
        with pytest.raises(Killed):
            move(source, target)
    with in_place(target), pytest.raises(CommandError, match="has not finished"):
        refuse_unfinished()
    with pytest.raises(CommandError, match="part of another copy"):
        move(filled("sqlite"), target)
    assert "Going on after" in move(source, target)
    assert rows_of(target) == rows_of(source)


@pytest.mark.parametrize(("of", "to"), [KINDS, KINDS[::-1]])
def test_what_is_restored_is_what_was_backed_up(
    of: str, to: str, backup: Callable[[str], Path], new_database: New, tmp_path: Path
) -> None:
    path, again = backup(of), tmp_path / "again.zip"
    with restored(new_database, to, path):
        run("backup", again)
        assert verify().fault == ""
        assert verify().entries == 3
        assert ApiKey.objects.get().account.user.username == "anna"
        # The numbering goes on after the rows.
        assert make_candle(Signal.objects.first().instrument, "5m").pk > 6  # type: ignore[union-attr]
    before, after = contents(path), contents(again)
    # The restore tells of itself and begins an epoch of its own.
    differing = {name for name in before if before[name] != after[name]}
    assert differing == {"accounts_controlevent", "market_enginestate"}
    assert before["market_candle"].rows == 6


def test_every_table_that_names_sessions_is_left_empty(backup: Callable[[str], Path]) -> None:
    naming = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "session_key" for field in model._meta.concrete_fields)
    }
    assert naming <= copies.LOGS_IN
    found = contents(backup("sqlite"))
    assert found.keys() >= copies.LOGS_IN
    assert not any(found[name].rows for name in copies.LOGS_IN)


# A backup's file is whole, its owner's alone, and takes no other's place; or it is not there.
def test_the_file_is_for_its_owner_and_replaces_none(backup: Callable[[str], Path]) -> None:
    path = backup("sqlite")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="is there already"):
        run("backup", path)


@pytest.mark.parametrize("folder", [".", "/", ""])
def test_a_folder_is_no_place_for_it(folder: str, filled: Callable[[str], str]) -> None:
    with in_place(filled("sqlite")), pytest.raises(CommandError, match="is there already"):
        run("backup", folder)


def test_a_full_disk_leaves_no_half_file(filled: Callable[[str], str], tmp_path: Path) -> None:
    path, before = tmp_path / "full" / "a.zip", resource.getrlimit(resource.RLIMIT_FSIZE)
    path.parent.mkdir()
    # SQLite keeps files of its own, which would meet the limit first.
    with in_place(filled("postgresql")):
        # So much that the disk is full while a table is read.
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO auth_group (name) SELECT n || repeat(md5(random()::text), 4)"
                " FROM generate_series(1, 10000) n"
            )
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(CommandError, match="File too large. No file was left behind"):
                run("backup", path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), CommandError("a.zip is damaged")])
def test_what_was_not_read_again_is_not_left(
    end: BaseException, filled: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(reader: ArchiveReader) -> None:
        raise end

    monkeypatch.setattr(ArchiveReader, "verify", stop)
    path = tmp_path / "ended" / "a.zip"
    path.parent.mkdir()
    with in_place(filled("sqlite")), pytest.raises((KeyboardInterrupt, CommandError)):
        run("backup", path)
    assert list(path.parent.iterdir()) == []


# The tables that are carried, and in which order.
def all_migrations() -> set[tuple[str, str]]:
    return set(MigrationLoader(None).graph.nodes)


def test_every_field_of_every_model_can_be_carried_and_the_migrations_make_their_tables() -> None:
    models = apps.get_models(include_auto_created=True)
    assert all(column_of(field).kind for model in models for field in model._meta.concrete_fields)
    ours = {model._meta.db_table for model in models if model._meta.managed}
    assert {table.name for table in schema_after(all_migrations()).tables} == ours


def test_an_earlier_state_has_the_tables_of_its_time() -> None:
    earlier = {(app, name) for app, name in all_migrations() if app != "status" or name < "0002"}
    names = {table.name for table in schema_after(earlier).tables}
    assert "status_processreport" not in names
    assert ("status", "0001_status") in last_migrations(earlier)


def test_what_migrating_puts_there_does_not_count_as_filled(
    new_database: Callable[[str], str], filled: Callable[[str], str]
) -> None:
    fresh, full = open_url(new_database("sqlite")), open_url(filled("sqlite"))
    assert filled_tables(fresh) == []
    assert "accounts_user" in filled_tables(full)
    fresh.close()
    full.close()
