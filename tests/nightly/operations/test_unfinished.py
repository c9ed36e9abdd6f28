"""Nobody starts on a copy before its last step, no step is lost when the command is given again, and the
commands of docs/operate/backup.md do what it says."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.models import F

from core.process import UNFINISHED, is_unfinished, refuse_unfinished
from operations.copying import copies
from operations.doctor.database import check_database
from signals_feed.ledger.guards import missing_triggers
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.documents.commands import sub_commands
from tests.factories import make_user
from tests.market.postgresql import in_place
from tests.operations.copying.conftest import KINDS, run
from tests.operations.copying.test_move import Killed, rows_of
from tests.operations.doctor.diagnoses import only_fault
from tests.programs.commands import manage

New = Callable[..., str]
# Before the triggers are put up, and before the ledger is verified.
LAST_STEPS = ("call_command", "check_ledger")


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a command that is killed at one of its last steps."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    def run_and_die(step: str, *words: object) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(copies, step, die)
            with pytest.raises(Killed):
                run(*map(str, words))

    return run_and_die


def see_that_nobody_starts() -> None:
    with pytest.raises(CommandError, match="has not finished. Run that command again"):
        refuse_unfinished()
    assert only_fault(check_database()) == (
        "fail",
        "The database is incomplete: a `restore` or `move` into it has not finished.",
    )


def see_that_it_is_whole() -> None:
    assert not is_unfinished()
    assert missing_triggers() == set()
    assert (verify().entries, verify().fault) == (3, "")


@pytest.mark.parametrize("step", LAST_STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_killed_near_its_end_is_made_again(
    kind: str, step: str, backup: Callable[[str], Path], new_database: New, killed: Callable[..., None]
) -> None:
    path = backup("sqlite")
    with in_place(new_database(kind)):
        killed(step, "restore", path)
        see_that_nobody_starts()
        run("restore", path)
        see_that_it_is_whole()


@pytest.mark.parametrize("step", LAST_STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_move_killed_near_its_end_goes_on(
    kind: str, step: str, filled: Callable[[str], str], new_database: New, killed: Callable[..., None]
) -> None:
    source, target = filled("sqlite"), new_database(kind, is_migrated=False)
    move = ("move", source, target, "--on-target")
    with in_place(target):
        killed(step, *move)
        see_that_nobody_starts()
        assert "Going on after" in run(*move)
        see_that_it_is_whole()
    assert rows_of(target) == rows_of(source)


def test_neither_takes_the_unfinished_copy_of_the_other_for_its_own(
    backup: Callable[[str], Path],
    filled: Callable[[str], str],
    new_database: New,
    killed: Callable[..., None],
) -> None:
    path, source, target = backup("sqlite"), filled("sqlite"), new_database("sqlite")
    move = ("move", source, target, "--on-target")
    with in_place(target):
        killed("check_ledger", "restore", path)
        with pytest.raises(CommandError, match="not empty: .* has rows"):
            run(*move)
        run(*move, "--anew")
    other = new_database("sqlite")
    with in_place(other):
        killed("check_ledger", "move", source, other, "--on-target")
        with pytest.raises(CommandError, match="not empty: .* --replace deletes"):
            run("restore", path)
        run("restore", path, "--replace")
        see_that_it_is_whole()


def test_the_service_does_not_start_on_it(new_database: New, tmp_path: Path) -> None:
    url = new_database("sqlite")
    with in_place(url):
        refuse_unfinished()
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {UNFINISHED} (what text)")
        with pytest.raises(CommandError, match="incomplete"):
            run("backup", tmp_path / "part.zip")
    done = manage(tmp_path / "var", "serve", DATABASE_URL=url)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("has not finished. Run that command again.")
    assert "Traceback" not in done.stderr


def test_a_ledger_that_does_not_verify_is_finished_only_when_asked(
    filled: Callable[[str], str], new_database: New, tmp_path: Path
) -> None:
    path, target = tmp_path / "altered.zip", new_database("sqlite", is_migrated=False)
    altered = filled("sqlite")
    with in_place(altered):
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER signal_is_frozen")
        Signal.objects.update(take_profit=F("take_profit") + 1)
        run("backup", path)
    with in_place(new_database("sqlite")):
        with pytest.raises(CommandError, match="was altered.* unless --despite-ledger finishes it"):
            run("restore", path)
        see_that_nobody_starts()
        assert "was altered" in run("restore", path, "--despite-ledger")
        assert not is_unfinished()
    with in_place(target):
        move = ("move", altered, target, "--on-target")
        with pytest.raises(CommandError, match="unless --despite-ledger"):
            run(*move)
        see_that_nobody_starts()
        run(*move, "--despite-ledger")
        assert not is_unfinished()


NAMED = ("/srv/backups", "/srv/tickwire", "postgresql://tickwire@db.example.com/tickwire")


def test_each_command_of_the_page_does_what_it_says(
    filled: Callable[[str], str], new_database: Callable[..., str], tmp_path: Path, settings: object
) -> None:
    settings.VAR_DIR = tmp_path  # type: ignore[attr-defined]
    source, empty = filled("sqlite"), new_database("sqlite", is_migrated=False)
    target = new_database("postgresql", is_migrated=False)
    (tmp_path / "tickwire.sqlite3").symlink_to(source.removeprefix("sqlite:///"))
    databases = {"backup": source, "restore": empty, "move": target}
    ran = []
    # How a log is begun after a restore, tests/transparency/test_command.py shows.
    for line in (each for each in sub_commands("backup.md") if each.split()[0] in databases):
        for name, ours in zip(NAMED, (tmp_path, tmp_path, target), strict=True):
            line = line.replace(name, str(ours))
        words = shlex.split(line)
        ran.append(words[0])
        words += ["--on-target"] * (words[0] == "move")
        with in_place(databases[words[0]]):
            if "--replace" in words:
                make_user("somebody")
            if "--anew" in words:
                # Nothing is unfinished after the one before.
                with pytest.raises(Exception, match="the target is whole"):
                    run(*words)
            else:
                run(*words)
            assert verify().fault == ""
    assert ran == ["backup"] * 3 + ["restore"] * 2 + ["move"] * 2
