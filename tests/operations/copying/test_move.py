"""Everything goes from one database into another, whichever they are, and a kill costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management.base import CommandError
from django.db import connection

from accounts.models import ApiKey
from core.process import UNFINISHED, refuse_unfinished
from market.models import Candle
from operations.copying import backing_up, moving, unfinished
from operations.copying.archive import ArchiveReader, Contents
from operations.copying.opening import open_url
from operations.copying.stores import digest
from operations.copying.tables import schema_after
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.factories import make_candle, make_user
from tests.market.postgresql import in_place

from .conftest import KINDS, run
from .test_tables import all_migrations

New = Callable[..., str]
pytestmark = pytest.mark.served


class Killed(BaseException):
    pass


@pytest.fixture
def move() -> Callable[..., str]:
    def carry(source: str, target: str, *words: str) -> str:
        with in_place(target):
            return run("move", source, target, "--on-target", *words)

    return carry


def rows_of(url: str) -> dict[str, Any]:
    store = open_url(url)
    try:
        return {table.name: digest(store.read(table)) for table in schema_after(all_migrations()).tables}
    finally:
        store.close()


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
    monkeypatch.setattr(moving, "AT_ONCE", 2)
    note, notes = unfinished.note, 0

    def note_and_die(*words: Any) -> None:
        nonlocal notes
        notes += 1
        # The rows of this turn are written, and go with its transaction.
        if notes == 40:
            raise Killed
        note(*words)

    with monkeypatch.context() as patched:
        patched.setattr(moving, "note", note_and_die)
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
    assert naming <= backing_up.LOGS_IN
    found = contents(backup("sqlite"))
    assert found.keys() >= backing_up.LOGS_IN
    assert not any(found[name].rows for name in backing_up.LOGS_IN)
