"""Everything goes from one database into another, whichever they are, and a kill costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from core.process import refuse_unfinished
from market.models import Candle, EngineState
from operations.copying import copies
from tests.factories import make_candle, make_user
from tests.market.postgresql import in_place
from tests.operations.copying import test_move as both_ways
from tests.operations.copying.conftest import KINDS
from tests.operations.copying.test_move import Killed, rows_of
from tests.operations.copying.test_move import move as move
from tests.programs.commands import manage

from .test_backup import NOT_SET

New = Callable[..., str]
SHAPES = "postgresql://user:password@host:5432/name or sqlite:////folder/file."


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_arrives_in_a_database_of_the_same_kind(
    kind: str, filled: Callable[[str], str], new_database: New, move: Callable[..., str]
) -> None:
    both_ways.test_every_row_arrives_as_it_was(kind, kind, filled, new_database, move)


def test_what_was_killed_while_tables_were_made_is_made_again(
    filled: Callable[[str], str], new_database: New, move: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = filled("sqlite"), new_database("sqlite", is_migrated=False)

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(copies, "make_months_named", die)
        with pytest.raises(Killed):
            move(source, target)
    with in_place(target), pytest.raises(CommandError, match="has not finished"):
        refuse_unfinished()
    move(source, target)
    assert rows_of(target) == rows_of(source)


def test_what_the_pepper_of_the_target_does_not_open_is_counted(
    filled: Callable[[str], str], new_database: New, move: Callable[..., str], settings: Any
) -> None:
    settings.KEY_PEPPER = "of the source"
    source, target = filled("sqlite"), new_database("sqlite", is_migrated=False)
    settings.KEY_PEPPER = "of the target"
    assert f"\n1 API keys {NOT_SET}" in move(source, target)
    settings.KEY_PEPPER_FALLBACKS = ["of the source"]
    assert NOT_SET not in move(source, new_database("sqlite", is_migrated=False))


def test_a_target_with_rows_is_refused(
    filled: Callable[[str], str], new_database: New, move: Callable[..., str]
) -> None:
    source, target = filled("sqlite"), new_database("sqlite")
    with in_place(target):
        make_user("somebody")
    with pytest.raises(CommandError, match="not empty: accounts_user has rows"):
        move(source, target)
    with pytest.raises(CommandError, match="the target is whole"):
        move(source, target, "--anew")
    with pytest.raises(CommandError, match="the same database"):
        move(target, target)


def test_what_changes_meanwhile_is_seen(
    filled: Callable[[str], str], new_database: New, move: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = filled("sqlite"), new_database("sqlite", is_migrated=False)
    carry = copies.carry

    def carry_and_change(*words: Any) -> None:
        carry(*words)
        with in_place(source):
            make_user("late")

    monkeypatch.setattr(copies, "carry", carry_and_change)
    with pytest.raises(CommandError, match="accounts_user is not the same in both"):
        move(source, target)
    monkeypatch.undo()
    move(source, target, "--anew")
    assert rows_of(target) == rows_of(source)


def test_a_source_that_is_in_use_or_has_more_digits_is_refused(
    filled: Callable[[str], str], new_database: New, move: Callable[..., str]
) -> None:
    source = filled("postgresql")
    with in_place(source):
        EngineState.objects.update(writer="host:1:x.y")
    with pytest.raises(CommandError, match="not stopped properly"):
        move(source, new_database("sqlite", is_migrated=False))
    with in_place(source):
        EngineState.objects.update(writer="")
        instrument = Candle.objects.first().instrument  # type: ignore[union-attr]
        make_candle(instrument, "4h", volume=Decimal("1234567890.12345678"))
    with pytest.raises(CommandError, match=r"volume of row \d+ is 1234567890.12345678: SQLite keeps 15"):
        move(source, new_database("sqlite", is_migrated=False))


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("var/tickwire.sqlite3", "sqlite:////b", f"The source should look like {SHAPES}"),
        ("sqlite:////a", "mysql://host/b", f"The target should look like {SHAPES}"),
        ("sqlite:////a", "postgresql://host/b?sslmode=on", "sslmode in the target should be one of these"),
        ("sqlite:///{}/none/a", "sqlite:////b", "The source: {}/none/a is not there"),
        ("sqlite:///{}/a", "sqlite:///{}/none/b", "The target: {}/none/b cannot be made: its folder"),
    ],
)
def test_what_is_wrong_with_an_address_is_said_of_the_right_one(
    source: str, target: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "a").touch()
    ended = manage(tmp_path, "move", source.format(tmp_path), target.format(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"CommandError: {says.format(tmp_path)}")
    assert len(ended.stderr.strip().splitlines()) == 1


def test_it_starts_itself_on_the_target(
    filled: Callable[[str], str], new_database: New, tmp_path: Path
) -> None:
    source, target = filled("sqlite"), new_database("postgresql", is_migrated=False)
    done = manage(tmp_path / "var", "move", source, target, SECRET_KEY="s", KEY_PEPPER="p")  # noqa: S106
    assert done.returncode == 0, done.stderr
    assert "3 entries hold" in done.stdout
    assert rows_of(target) == rows_of(source)
