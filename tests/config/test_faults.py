from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.commands import manage


def test_production_names_what_it_misses(tmp_path: Path) -> None:
    ended = manage(tmp_path, "serve", PRODUCTION="1", SECRET_KEY="long and random")

    assert ended.returncode == 1
    assert ended.stderr.strip() == (
        "PRODUCTION=1 needs these variables: KEY_PEPPER, ALLOWED_HOSTS, DATABASE_URL, REDIS_URL, EMAIL_URL."
    )


def test_production_refuses_the_demo(tmp_path: Path) -> None:
    needed = {
        "SECRET_KEY": "secret",
        "KEY_PEPPER": "pepper",
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1",
        "ALLOWED_HOSTS": "tickwire.example",
        "EMAIL_URL": "dummymail://",
    }

    ended = manage(tmp_path, "check", PRODUCTION="1", DEMO="1", **needed)

    assert (ended.returncode, ended.stderr.strip()) == (
        1,
        "PRODUCTION=1 runs without DEMO and DEBUG: unset both.",
    )


def test_a_missing_database_is_one_clear_sentence(tmp_path: Path) -> None:
    ended = manage(tmp_path, "issue_key", "alice", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")

    assert ended.returncode == 1
    assert ended.stderr.startswith("The database does not answer")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("address", ["nonsense", "mysql://127.0.0.1/tickwire"])
def test_an_address_of_no_known_database_is_one_clear_sentence(tmp_path: Path, address: str) -> None:
    ended = manage(tmp_path, "check", DATABASE_URL=address)

    assert (ended.returncode, ended.stderr.strip()) == (
        1,
        "DATABASE_URL should look like postgresql://user:password@host:5432/name.",
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("PORT", "PORT should be a whole number from 0 to 65535, not 'many'."),
        ("REPLAY_SPEED", "REPLAY_SPEED should be a number of 0 or more, not 'many'."),
    ],
)
def test_a_setting_that_is_no_number_is_named(tmp_path: Path, name: str, sentence: str) -> None:
    ended = manage(tmp_path, "check", **{name: "many"})

    assert (ended.returncode, ended.stderr.strip()) == (1, sentence)


def test_an_empty_address_is_none(tmp_path: Path) -> None:
    assert manage(tmp_path, "check", DATABASE_URL="").returncode == 0


def test_a_folder_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where the folder should be")

    ended = manage(tmp_path / "var", "check")

    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1


def test_commands_before_the_first_migration_say_what_to_do(tmp_path: Path) -> None:
    ended = manage(tmp_path, "issue_key", "alice")

    assert (ended.returncode, ended.stderr.strip()) == (
        1,
        "The database has no tables yet. Run `.venv/bin/python manage.py migrate` first; "
        "`.venv/bin/python manage.py serve` does it, too.",
    )
