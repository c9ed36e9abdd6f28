"""A number that named an account once names no other account later: events that outlive it tell of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from core.events.outbox import ControlEvent
from operations.copying.databases import open_default
from tests.factories import make_account, make_user
from tests.market.postgresql import in_place
from tests.operations.copying.conftest import KINDS, run
from tests.operations.copying.test_move import Killed

New = Callable[..., str]


def make_and_delete_accounts() -> int:
    """Returns the last number that was given."""
    for turn in range(3):
        account = make_account(make_user(f"gone-{turn}"))
        last = account.pk
        account.delete()
        account.user.delete()
    return last


def next_number() -> int:
    return make_account(make_user("newcomer")).pk


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("of", KINDS)
def test_no_number_is_given_again(of: str, to: str, new_database: New, tmp_path: Path) -> None:
    path, source = tmp_path / "a.zip", new_database(of)
    with in_place(source):
        last = make_and_delete_accounts()
        run("backup", path)
    restored, moved = new_database(to), new_database(to, is_migrated=False)
    with in_place(restored):
        run("restore", path)
        # Restored again, and backed up before anybody came.
        run("backup", tmp_path / "again.zip")
    with in_place(moved):
        run("move", source, moved, "--on-target")
        assert next_number() > last
    with in_place(new_database("sqlite")):
        run("restore", tmp_path / "again.zip")
        assert next_number() > last
    with in_place(restored):
        assert next_number() > last


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_were_given_after_the_backup_are_not_given_again(
    kind: str, new_database: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, earlier = tmp_path / "a.zip", tmp_path / "earlier.zip"
    with in_place(new_database(kind)):
        run("backup", path)
        call_command("migrate", "status", "0001", verbosity=0)
        run("backup", earlier)
        call_command("migrate", "status", verbosity=0)
        last = make_and_delete_accounts()
        run("restore", path, "--replace")
        assert (again := next_number()) > last

        def die(*_: object) -> None:
            raise Killed

        # Its tables are dropped, and with them what they counted.
        with monkeypatch.context() as patched:
            patched.setattr("operations.copying.copies.make_months_named", die)
            with pytest.raises(Killed):
                run("restore", earlier, "--replace")
        run("restore", earlier)
        assert next_number() > again


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_is_given_that_an_event_names(kind: str, new_database: New, tmp_path: Path) -> None:
    path, source = tmp_path / "a.zip", new_database("sqlite")
    with in_place(source):
        # As where a migration of SQLite made the table anew, or a counter was set back by hand.
        ControlEvent.objects.create(kind="test", account_id=500)
        run("backup", path)
    with in_place(new_database(kind)):
        run("restore", path)
        assert next_number() > 500
    with in_place(target := new_database(kind, is_migrated=False)):
        run("move", source, target, "--on-target")
        assert next_number() > 500


def test_migrations_that_make_a_table_anew_do_not_set_its_numbers_back(
    new_database: New, tmp_path: Path
) -> None:
    path = tmp_path / "earlier.zip"

    def last_key_number() -> int:
        with closing(open_default()) as store:
            return store.numbers()["accounts_apikey"]

    with in_place(new_database("sqlite")):
        call_command("migrate", "accounts", "0008", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO sqlite_sequence VALUES ('accounts_apikey', 70)")
        run("backup", path)
        call_command("migrate", verbosity=0)
        assert last_key_number() == 70
    with in_place(new_database("sqlite")):
        run("restore", path)
        assert last_key_number() == 70


def test_a_backup_that_is_restored_twice_tells_of_it_above_all_that_was_told_between(
    new_database: New, tmp_path: Path
) -> None:
    path = tmp_path / "a.zip"
    with in_place(new_database("sqlite")):
        ControlEvent.objects.create(kind="test")
        run("backup", path)
    with in_place(new_database("sqlite")):
        run("restore", path)
        heard = ControlEvent.objects.create(kind="test").position
    with in_place(new_database("sqlite")):
        run("restore", path)
        assert ControlEvent.objects.is_lost(heard)
