"""What commands say of what an operator can fix; and how long `migrate` waits for a database."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from django.db import utils

from config.command_line.execution import explain
from config.installation import make_secret
from core.program import ROOT
from tests.databases import prepared
from tests.patience import PATIENCE_S, START_PATIENCE_S, wait_until
from tests.programs import services
from tests.programs.commands import manage
from tests.programs.running import Serve, environment

pytestmark = pytest.mark.served


PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": secrets.token_urlsafe(48),
    "KEY_PEPPER": secrets.token_urlsafe(48),
    "ALLOWED_HOSTS": "tickwire.example",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "EMAIL_URL": "dummymail://",
}
NOT_PRODUCTION = {"DEMO": "1", "PRODUCTION": "1", "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
REFUSED = {
    "the demo in production": (
        "check",
        PRODUCTION | NOT_PRODUCTION,
        "PRODUCTION=1 runs without DEMO and DEBUG: unset both.",
    ),
    "a second Redis without a first": (
        "check",
        {"BUS_REDIS_URL": "redis://127.0.0.1:1/0", "REDIS_URL": ""},
        "BUS_REDIS_URL and BUS_REPLICA_URL stand beside REDIS_URL: set that too.",
    ),
    "no processes": (
        "serve --workers 0",
        {},
        "CommandError: --workers is how many processes serve: 1 or more.",
    ),
    "no tables": (
        "issue_key alice",
        {"SECRET_KEY": "secret"},
        "The database has no tables yet. Run `.venv/bin/python manage.py migrate` first; ",
    ),
    "a file where the folder should be": (
        "check --data {}/file",
        {},
        "{}/file is not a folder. Name one with --data or VAR_DIR.",
    ),
    "no folder and no place for one": (
        "check --data /proc/tickwire",
        {},
        "/proc/tickwire cannot be made or found. "
        "Correct the path, or choose another folder with --data or VAR_DIR.",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_an_operator_can_mend_is_one_clear_sentence(tmp_path: Path, why: str) -> None:
    typed, given, sentence = REFUSED[why]
    (tmp_path / "file").touch()
    if why == "no tables":
        assert manage(tmp_path / "var", "migrate", "--plan").returncode == 0
    ended = manage(tmp_path / "var", *typed.format(tmp_path).split(), **given)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert ended.stderr.startswith(sentence.format(tmp_path))


@pytest.mark.parametrize(("at", "size"), [(0, 4096), (4096, 400_000)], ids=["its head", "within"])
def test_a_damaged_file_of_sqlite_is_told_with_a_way_out_that_works(
    at: int, size: int, tmp_path: Path
) -> None:
    backup, path = tmp_path / "backup.zip", tmp_path / "tickwire.sqlite3"
    make_secret(tmp_path)
    prepared.copy_sqlite(path)
    assert manage(tmp_path, "backup", str(backup)).returncode == 0
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * size)

    served, diagnosed = manage(tmp_path, "serve", DEMO="0"), manage(tmp_path, "doctor")

    way_out = "Stop whatever uses it, move it away with its -wal and -shm, and restore a backup in its place:"
    assert served.returncode == 1
    assert served.stderr.startswith(f"The database file {path} is damaged. {way_out}")
    assert "Traceback" not in served.stderr
    (line,) = [line for line in diagnosed.stdout.splitlines() if line.startswith("fail")]
    assert line.split(maxsplit=2)[1:] == ["database", f"The database file {path} is damaged."]
    assert way_out in diagnosed.stdout
    for each in tmp_path.glob("tickwire.sqlite3*"):
        each.rename(tmp_path / f"damaged{each.suffix}")
    assert manage(tmp_path, "restore", str(backup)).returncode == 0


def test_help_is_given_whatever_the_settings_are(tmp_path: Path) -> None:
    ended = manage(
        tmp_path / "var", "issue_key", "--help", PORT="abc", DATABASE_URL="nonsense", PRODUCTION="1"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("usage: manage.py ")
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "The disk is full (/srv/tickwire)."),
        (errno.EDQUOT, "This user's disk quota is used up (/srv/tickwire)."),
        (errno.EPERM, "Tickwire may not read or write here (/srv/tickwire). Run it as the owner,"),
        (errno.EISDIR, "/srv/tickwire is a folder and not a file."),
        (errno.EMFILE, "Too many files are open."),
    ],
)
def test_what_the_system_refuses_is_one_clear_sentence(number: int, says: str) -> None:
    explained = explain(OSError(number, os.strerror(number), "/srv/tickwire"))
    assert explained is not None
    assert explained.startswith(f"{says} ")
    # A file of ours that is missing keeps its traceback.
    missing = str(ROOT / "templates" / "none.html")
    assert explain(FileNotFoundError(errno.ENOENT, "No such file or directory", missing)) is None
    assert explain(FileNotFoundError(errno.ENOENT, "No such file or directory")) is None


@pytest.mark.parametrize("words", [["help"], ["doctor", "--json"], ["verify_ledger"]])
def test_reader_that_has_enough_is_no_fault(words: list[str], tmp_path: Path) -> None:
    if words == ["verify_ledger"]:
        prepared.copy_sqlite(tmp_path / "tickwire.sqlite3")
    names = {"SECRET_KEY": "long and random", "PORT": str(services.free_port())}
    unread, out = os.pipe()
    os.close(unread)
    command, given = [sys.executable, "manage.py", *words], environment(tmp_path, **names)
    with subprocess.Popen(command, env=given, stdout=out, stderr=subprocess.PIPE, text=True) as ended:
        os.close(out)
        complaint = ended.communicate(timeout=START_PATIENCE_S)[1]
    # What a shell tells of a program that SIGPIPE ended.
    assert (ended.returncode, complaint) == (141, "")


def test_service_goes_on_without_a_reader(tmp_path: Path) -> None:
    typed = f"exec {sys.executable} manage.py serve > >(exec true)"
    with Serve(tmp_path / "var", DEMO="0").as_typed(["bash", "-c", typed], ROOT) as serving:
        assert httpx.get(f"{serving.url}/livez", timeout=PATIENCE_S).status_code == 200
    assert serving.stop() == 0
    # A machine that is too slow may be told of.
    assert [line for line in serving.output.splitlines() if "[serving.readiness]" not in line] == []


WRONG_PASSWORD = 'password authentication failed for user "trader"'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where it is, for a user who needs a password."""
    folder = tmp_path_factory.mktemp("server")
    with services.postgres(folder) as url:
        rules = folder / "postgres" / "pg_hba.conf"
        rules.write_text(f"host all trader 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(url, autocommit=True) as staff:
            staff.execute("CREATE ROLE trader LOGIN PASSWORD 'right'")
            staff.execute("SELECT pg_reload_conf()")
        place = url.rpartition("@")[2].partition("/")[0]
        wait_until(lambda: is_refused(f"postgresql://trader:wrong@{place}/postgres"))
        yield place


def is_refused(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return True
    return False


@pytest.mark.parametrize(
    ("words", "login", "says"),
    [
        (["createsuperuser", "--no-input"], "trader:wrong@{}/postgres", WRONG_PASSWORD),
        (
            ["issue_key", "alice"],
            "postgres@{}/nobody_made_this",
            'database "nobody_made_this" does not exist',
        ),
    ],
)
def test_why_the_database_refuses_is_said_in_its_own_words(
    server: str, tmp_path_factory: pytest.TempPathFactory, words: list[str], login: str, says: str
) -> None:
    names = {"SECRET_KEY": "secret", "DATABASE_URL": f"postgresql://{login.format(server)}"}
    ended = manage(tmp_path_factory.mktemp("data") / "var", *words, **names)
    (line,) = ended.stderr.strip().splitlines()
    assert ended.returncode == 1
    assert line.startswith("The database does not answer: ")
    assert f"{says}. Check DATABASE_URL" in line


@pytest.mark.parametrize(
    ("role", "read_only", "says"),
    [
        ("guest", "off", "The role in DATABASE_URL lacks permissions: permission denied for schema public."),
        ("reader", "on", "The database takes no writes: it is a standby, or was made read-only."),
    ],
)
def test_a_database_that_lets_nobody_write_is_one_clear_sentence(
    server: str, tmp_path_factory: pytest.TempPathFactory, role: str, read_only: str, says: str
) -> None:
    with psycopg.connect(f"postgresql://postgres@{server}/postgres", autocommit=True) as staff:
        staff.execute(f"CREATE ROLE {role} LOGIN")
        staff.execute(f"ALTER ROLE {role} SET default_transaction_read_only = {read_only}")
    names = {"SECRET_KEY": "secret", "DATABASE_URL": f"postgresql://{role}@{server}/postgres"}
    ended = manage(tmp_path_factory.mktemp("data") / "var", "migrate", **names)
    (line,) = ended.stderr.strip().splitlines()
    assert ended.returncode == 1
    assert line.startswith(f"{says} ")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            psycopg.errors.InsufficientPrivilege("permission denied for table a\nLINE 1"),
            ": permission denied for table a.",
        ),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "Name the primary in DATABASE_URL"),
        (
            psycopg.errors.DiskFull("could not extend file"),
            "The disk of the database is full: could not extend file.",
        ),
    ],
)
def test_what_postgresql_refuses_a_command_is_one_clear_sentence(fault: psycopg.Error, says: str) -> None:
    # Django's error has the name of the class above.
    told = getattr(utils, type(fault).__mro__[1].__name__)(*fault.args)
    told.__cause__ = fault
    assert says in (explain(told) or "")


def test_a_file_of_sqlite_that_takes_no_writes_is_one_clear_sentence(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a") as restore, sqlite3.connect(tmp_path / "a", timeout=0) as file:
        restore.execute("BEGIN IMMEDIATE")
        assert "Repeat the command when that has ended." in explained(file, "CREATE TABLE a (b)")
    with sqlite3.connect(f"file:{tmp_path / 'a'}?mode=ro", uri=True) as file:
        assert "may not be written. Make it and its folder writable" in explained(file, "CREATE TABLE a (b)")


def explained(file: sqlite3.Connection, sql: str) -> str:
    with pytest.raises(sqlite3.OperationalError) as raised:
        file.execute(sql)
    # As Django wraps it.
    told = utils.OperationalError(*raised.value.args)
    told.__cause__ = raised.value
    return explain(told) or ""


def test_migrate_of_production_does_not_wait_for_a_wrong_password_to_pass(
    server: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = PRODUCTION | {"DATABASE_URL": f"postgresql://trader:wrong@{server}/postgres"}
    ended = manage(tmp_path_factory.mktemp("data") / "var", "migrate", **names)
    assert (ended.returncode, WRONG_PASSWORD in ended.stderr) == (1, True)
    assert "waits for the database" not in ended.stderr


def test_migrate_of_production_waits_for_a_database_that_is_still_starting(tmp_path: Path) -> None:
    port = services.free_port()
    names = PRODUCTION | {"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{port}/postgres"}
    command = [sys.executable, "manage.py", "migrate", "--plan"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command, env=environment(tmp_path / "var", **names), stdout=log, stderr=subprocess.STDOUT
        ) as migrate,
    ):
        wait_until(lambda: b"`migrate` waits for the database" in (tmp_path / "log").read_bytes())
        with services.postgres(tmp_path, port):
            assert migrate.wait(PATIENCE_S) == 0
    assert b"Planned operations" in (tmp_path / "log").read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, which only root may mount."""
    if os.geteuid() and not os.environ.get("CI"):
        pytest.skip("Only root may mount a small disk; CI does.")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("is_full", [False, True], ids=["that fills up", "that is full from the start"])
def test_a_full_disk_is_one_clear_sentence(small_disk: Path, is_full: bool) -> None:
    if is_full:
        with (small_disk / "full").open("wb") as file, pytest.raises(OSError, match="No space left"):
            file.write(b"0" * 4_000_000)
    ended = manage(small_disk / "var", "serve", PORT=str(services.free_port()))
    lines = ended.stderr.strip().splitlines()
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert lines[-1].startswith("The disk is full")
    assert len(lines) == 1 or not is_full
