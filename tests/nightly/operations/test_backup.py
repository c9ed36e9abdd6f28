"""A backup of either database goes into either database, and is the same there to the digit."""

from __future__ import annotations

import errno
import shlex
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client

from accounts.models import PageSession, User
from core.encryption import seal
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from market.models import Candle, EngineState
from market.push.keys import issue_ingest_key
from market.store import market_tables
from operations.copying import copies, tables
from operations.copying.databases import open_url
from signals_feed.ledger.verify import verify
from signals_feed.models import Announcement
from signals_feed.stream import REPLAYED_FOR
from tests.factories import NOON, make_key, make_user
from tests.market.postgresql import in_place
from tests.operations.copying import test_move as both_ways
from tests.operations.copying.conftest import KINDS, run
from tests.operations.copying.test_move import contents, restored
from tests.programs.commands import manage

New = Callable[..., str]
RELEASE = Path(__file__).resolve().parents[3] / "RELEASE"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_restored_into_the_same_kind_is_what_was_backed_up(
    kind: str, backup: Callable[[str], Path], new_database: New, tmp_path: Path
) -> None:
    both_ways.test_what_is_restored_is_what_was_backed_up(kind, kind, backup, new_database, tmp_path)


def test_it_comes_back_with_its_secrets_on_a_machine_that_has_nothing(
    filled: Callable[[str], str], tmp_path: Path, settings: Any
) -> None:
    path, var_dir = tmp_path / "b.zip", tmp_path / "new" / "var"
    # As it is where nobody has set one.
    settings.KEY_PEPPER = f"pepper:{settings.SECRET_KEY}"
    with in_place(filled("sqlite")):
        run("backup", path, "--with-secrets")
    lines = (tmp_path / "b.zip.secrets").read_text().splitlines()
    secrets = dict(shlex.split(line)[0].split("=", 1) for line in lines)
    done = manage(var_dir, "restore", str(path), **secrets)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 entries hold" in done.stdout
    assert secrets["KEY_PEPPER_FALLBACKS"] == settings.KEY_PEPPER
    assert NOT_SET not in done.stdout


def test_what_cannot_be_written_or_told_leaves_nothing(filled: Callable[[str], str], tmp_path: Path) -> None:
    class Unread(StringIO):
        def write(self, text: str) -> int:
            if text.startswith("  "):
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")
            return len(text)

    with in_place(filled("sqlite")):
        with pytest.raises(CommandError, match=r"typo does not exist\. Create it"):
            run("backup", tmp_path / "typo" / "b.zip")
        with pytest.raises(CommandError, match="its output is no longer read"):
            call_command("backup", str(tmp_path / "b.zip"), stdout=Unread())
    assert not list(tmp_path.glob("**/b.zip*"))


def test_nothing_goes_on_from_numbers_that_may_be_given_again(
    backup: Callable[[str], Path], new_database: New
) -> None:
    with restored(new_database, "sqlite", backup("sqlite")):
        state, event = EngineState.objects.get(), ControlEvent.objects.newest()
        assert state.epoch not in ("", "before")
        assert event is not None
        last = event.facts["after"]
        can_replay = Announcement.objects.can_replay_after
        since = NOON - REPLAYED_FOR * 10_000
        assert can_replay(0, since)
        assert not can_replay(last + 1, since)
        assert not can_replay(event.position - 1, since)


def test_months_are_made_for_their_candles(backup: Callable[[str], Path], new_database: New) -> None:
    with restored(new_database, "postgresql", backup("sqlite")):
        assert NOON.replace(day=1, hour=0) in market_tables().months()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM market_candle_1m_rest")
            assert cursor.fetchone() == (0,)
        assert Candle.objects.filter(timeframe="1m").count() == 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_filled_database_is_replaced_only_when_asked_and_an_empty_one_is_made(
    kind: str, backup: Callable[[str], Path], new_database: New
) -> None:
    path = backup(kind)
    with in_place(new_database(kind)):
        make_user("somebody")
        with pytest.raises(CommandError, match="accounts_user has rows. --replace deletes"):
            run("restore", path)
        run("restore", path, "--replace")
        assert verify().fault == ""
        assert not connection.introspection.table_names().count(UNFINISHED)
    with in_place(new_database(kind, is_migrated=False)):
        run("restore", path)
        assert verify().entries == 3


def test_a_backup_of_the_last_release_is_migrated(new_database: New, tmp_path: Path) -> None:
    path, (_, *last) = tmp_path / "earlier.zip", RELEASE.read_text().splitlines()
    with in_place(new_database("sqlite")):
        for line in last:
            call_command("migrate", *line.split(), verbosity=0)
        call_command("migrate", "status", "0001", verbosity=0)
        make_user("early")
        run("backup", path)
    assert "status_processreport" not in contents(path)
    with in_place(new_database("postgresql")):
        run("restore", path)
        assert "status_processreport" in connection.introspection.table_names()
        assert User.objects.get().username == "early"
        call_command("migrate", "--check", verbosity=0)


@pytest.mark.parametrize("act", ["snapshot", "writing"])
def test_what_is_broken_off_while_a_table_is_read_ends(act: str, filled: Callable[[str], str]) -> None:
    store = open_url(filled("postgresql"))
    (table,) = (each for each in copies.schema_of(store).tables if each.name == copies.CANDLES)
    # It keeps what is read half, as a traceback does.
    rows = store.read(table)

    def break_off() -> None:
        with getattr(store, act)():
            next(rows)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    store.close()


def test_what_a_newer_version_made_is_refused(new_database: New, tmp_path: Path) -> None:
    path = tmp_path / "newer.zip"
    with in_place(new_database("sqlite")):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('status', '9_x', '')")
        with pytest.raises(CommandError, match="newer than this version: it has status.9_x"):
            run("backup", path)
    assert not list(tmp_path.glob("newer*"))


def test_a_damaged_file_is_refused(backup: Callable[[str], Path], new_database: New, tmp_path: Path) -> None:
    path, damaged = backup("sqlite"), tmp_path / "damaged.zip"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(damaged, "w") as copy:
        for name in whole.namelist():
            data = whole.read(name)
            copy.writestr(name, data.replace(b"anna", b"otto") if name.endswith("user.rows") else data)
    with pytest.raises(CommandError, match="damaged: accounts_user is not what was written"):
        run("backup", "--verify", damaged)
    assert "is whole" in run("backup", "--verify", path)
    path.write_bytes(path.read_bytes()[:-100])
    with (
        in_place(new_database("sqlite")),
        pytest.raises(CommandError, match="is not a backup, or it is incomplete"),
    ):
        run("restore", path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_line_names_the_database_without_a_password(
    kind: str, new_database: New, tmp_path: Path
) -> None:
    def with_password(url: str) -> str:
        return url.replace("postgres@", "postgres:hunter2@")

    def place_in(url: str) -> str:
        server, _, name = url.rpartition("@")[2].partition("/")
        sqlite = f"SQLite at {url.removeprefix('sqlite:///')}"
        return sqlite if url.startswith("sqlite") else f"PostgreSQL at {server}, database {name}"

    path, source, target = tmp_path / "a.zip", new_database(kind), new_database(kind, is_migrated=False)
    with in_place(with_password(source)):
        for said in (run("backup", path), run("restore", path)):
            assert said.splitlines()[0] == f"The database is {place_in(source)}."
    with in_place(with_password(target)):
        said = run("move", with_password(source), with_password(target), "--on-target")
    assert said.splitlines()[0] == f"The source is {place_in(source)}; the target is {place_in(target)}."


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (KeyboardInterrupt(), "Stopped. To finish it, run the same command again"),
        (ValueError("no number"), "news_newsitem has a value that cannot be read: no number"),
    ],
)
def test_what_goes_wrong_with_a_value_is_named(
    fault: BaseException,
    says: str,
    filled: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.zip"

    def fail(_: str) -> str:
        raise fault

    with in_place(filled("sqlite")), monkeypatch.context() as patched:
        patched.setitem(tables.FORMS, "real", fail)
        with pytest.raises(CommandError, match=says):
            run("backup", path)
    assert not path.exists()


def test_secrets_are_written_apart_and_only_when_asked(
    filled: Callable[[str], str], tmp_path: Path, settings: Any
) -> None:
    settings.KEY_PEPPER = "pepper with 'quotes'"
    path, secrets = tmp_path / "a.zip", tmp_path / "a.zip.secrets"
    with in_place(filled("sqlite")):
        assert str(secrets) in run("backup", path, "--with-secrets")
        assert secrets.stat().st_mode & 0o777 == 0o600
        assert "KEY_PEPPER='pepper with " in secrets.read_text()
        assert b"pepper with" not in path.read_bytes()
        path.unlink()
        # Not after everything was written.
        with pytest.raises(CommandError, match="secrets is there already"):
            run("backup", path, "--with-secrets")
    assert not path.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_logs_nobody_in(
    kind: str, filled: Callable[[str], str], new_database: New, tmp_path: Path, settings: Any
) -> None:
    path, browser = tmp_path / "a.zip", Client()
    with in_place(filled(kind)):
        anna = User.objects.get()
        browser.force_login(anna)
        cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
        PageSession.objects.create(session_key=cookie, account=anna.account)
        run("backup", path)
        assert browser.get("/settings/account").status_code == 200
    with zipfile.ZipFile(path) as packed:
        assert not [name for name in packed.namelist() if cookie.encode() in packed.read(name)]
    with restored(new_database, kind, path):
        assert browser.get("/settings/account").status_code == 302


NOT_SET = "open nothing, because they were made with a KEY_PEPPER that is not set"


def test_what_needs_a_pepper_that_is_not_set_is_counted(
    filled: Callable[[str], str], new_database: New, tmp_path: Path, settings: Any
) -> None:
    path = tmp_path / "a.zip"
    settings.KEY_PEPPER = "the first"
    with in_place(filled("sqlite")):
        anna = User.objects.get()
        issue_ingest_key("desk", by="test")
        Authenticator.objects.create(user=anna, type="totp", data={"secret": seal("a secret")})
        # Its row does not tell the pepper: it is taken to be that of the backup.
        make_key(anna.account, pepper_name="")
        settings.KEY_PEPPER = "the second"
        run("backup", path)
    with in_place(new_database("sqlite")):
        assert f"\n1 API keys, 1 ingest keys, 1 second factors {NOT_SET}" in run("restore", path)
        settings.KEY_PEPPER_FALLBACKS = ["the first"]
        assert NOT_SET not in run("restore", path, "--replace")
        settings.KEY_PEPPER = "the third"
        assert f"\n1 API keys {NOT_SET}" in run("restore", path, "--replace")
