"""The command: what it prints, its exit status, and faults that only a process of its own can have."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from signal import Signals
from typing import Any

import psycopg
import pytest

from tests.databases import prepared
from tests.programs import services
from tests.programs.commands import manage
from tests.reliability.clocks.clock import Clock

pytestmark = pytest.mark.served

PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": secrets.token_urlsafe(48),
    "KEY_PEPPER": secrets.token_urlsafe(48),
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "EMAIL_URL": "smtp+tls://user:a-long-password@127.0.0.1:1",
    "DEFAULT_FROM_EMAIL": "no-reply@tickwire.example",
}


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("doctor") / "postgres"
    prepared.copy_postgres(data)
    with services.postgres_of(data, Signals.SIGQUIT) as url:
        yield url


def said_of(about: str, output: str) -> dict[str, str]:
    """The sentences about one thing, each with its level."""
    findings: list[dict[str, Any]] = json.loads(output)["findings"]
    return {found["says"]: found["level"] for found in findings if found["about"] == about}


@pytest.mark.parametrize("is_made", [False, True])
def test_it_makes_nothing_where_nothing_is(is_made: bool, tmp_path: Path) -> None:
    var_dir = tmp_path / "typo"
    if is_made:
        var_dir.mkdir(mode=0o700)
    ended = manage(var_dir, "doctor", PORT=str(services.free_port()))
    assert (ended.returncode, ended.stderr) == (0, "")
    levels = [line.split()[:2] for line in ended.stdout.splitlines() if not line.startswith(" ")]
    assert ["warn", "database"] in levels
    assert ["warn", "proxy"] in levels
    assert (["warn", "data"] in levels) is not is_made
    assert [path.name for path in tmp_path.rglob("*")] == ["typo"] * is_made


def test_a_fresh_installation_is_in_order(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    assert manage(var_dir, "migrate", "--plan").returncode == 0
    ended = manage(var_dir, "doctor", PORT=str(services.free_port()))
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0].startswith(f"ok    data          {var_dir} can be written")
    assert "fail" not in {line.partition(" ")[0] for line in lines}
    # Its first start makes the tables, and says so here.
    assert any(line.lstrip().startswith("→ `") and "applies them" in line for line in lines)


def test_faults_come_with_their_mend_and_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    away = f"postgresql://nobody@127.0.0.1:{services.free_port()}/none"
    names = PRODUCTION | {"DATABASE_URL": away, "ALLOWED_HOSTS": "*"}
    ended = manage(tmp_path / "var", "doctor", "--json", **names)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["ok"] is False
    assert said_of("settings", ended.stdout) == {"ALLOWED_HOSTS accepts every name. (tickwire.E005)": "fail"}
    ((database, level),) = said_of("database", ended.stdout).items()
    assert (level, "onnection refused" in database) == ("fail", True)
    assert "fail" in said_of("redis", ended.stdout).values()
    assert "fail" in said_of("mail", ended.stdout).values()
    assert all(found["fix"] for found in json.loads(ended.stdout)["findings"] if found["level"] != "ok")


def test_a_database_that_takes_no_writes_is_a_fault(postgres: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres, autocommit=True) as staff:
        staff.execute("CREATE DATABASE standby")
        staff.execute("ALTER DATABASE standby SET default_transaction_read_only = on")
    url = f"{postgres.removesuffix('postgres')}standby"
    ended = manage(tmp_path / "var", "doctor", "--json", DATABASE_URL=url, DATABASE_POOL="500")
    found = said_of("database", ended.stdout)
    assert found["The database takes no writes: it is a standby, or was made read-only."] == "fail"
    (says,) = (says for says, level in found.items() if level == "fail" and "connections" in says)
    assert says.startswith(
        "All processes may hold 510 connections, and the server allows 197: (1 web process) × 500"
    )


def test_a_role_without_rights_is_a_fault(postgres: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres, autocommit=True) as staff:
        staff.execute("CREATE ROLE guest LOGIN")
        staff.execute("CREATE DATABASE bare")
    place = postgres.rpartition("@")[2].removesuffix("postgres")
    for name, says in (
        ("bare", "may make no tables in the schema public"),
        ("postgres", "may not read and write the table account_emailaddress"),
    ):
        url = f"postgresql://guest@{place}{name}"
        ended = manage(tmp_path / "var", "doctor", "--json", DATABASE_URL=url)
        assert said_of("database", ended.stdout)[f"The role of DATABASE_URL {says}."] == "fail"
    with psycopg.connect(postgres, autocommit=True) as staff:
        staff.execute("ALTER DATABASE bare OWNER TO guest")
    url = f"postgresql://guest@{place}bare"
    ended = manage(tmp_path / "var", "doctor", "--json", DATABASE_URL=url)
    assert "fail" not in said_of("database", ended.stdout).values()


def test_connections_are_reckoned_with_the_processes_that_run(postgres: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres, autocommit=True) as staff:
        # Of processes that go on reporting, however long the commands take.
        for process in ("a", "b"):
            staff.execute(
                "INSERT INTO status_processreport VALUES (%s, now() + interval '1 hour', '{}')", [process]
            )
    for pool, level in (("90", "ok"), ("100", "warn")):
        ended = manage(tmp_path / "var", "doctor", "--json", DATABASE_URL=postgres, DATABASE_POOL=pool)
        found = said_of("database", ended.stdout)
        (says,) = (each for each in found if f"(2 web processes that run now) × {pool} + 10" in each)
        assert found[says] == level


def test_clocks_of_others_are_compared_with_ours(postgres: str, tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    clock = Clock(tmp_path)
    clock.step(-60)
    with services.redis(tmp_path / "redis") as redis:
        names = clock.environment | {"DATABASE_URL": postgres, "REDIS_URL": redis}
        ended = manage(tmp_path / "var", "doctor", "--json", **names)
    for about, who in (("database", "the database"), ("redis", "Redis")):
        (says,) = [says for says, level in said_of(about, ended.stdout).items() if level == "fail"]
        assert says.startswith(f"The clock of {who} is ")
        assert says.endswith(" s ahead of ours.")


def test_a_word_that_is_no_mail_address_is_refused(tmp_path: Path) -> None:
    ended = manage(tmp_path / "var", "doctor", "--mail", "nobody")
    assert (ended.returncode, "is not a mail address" in ended.stderr) == (1, True)
