"""Nothing of the demo runs beside real prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.commands import manage

pytestmark = pytest.mark.served

PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": "Zq8vT3mXw1LrC9dKfP0yHn5sGbJ7uEaU2iVo4tRk",
    "KEY_PEPPER": "pL0wQx7NzB3cYh8GsM5tVd2JfRk9aUe6TiXo1HvC",
    "DATABASE_URL": "postgresql://127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "ALLOWED_HOSTS": "tickwire.example",
    "EMAIL_URL": "dummymail://",
}


def prepare_data(folder: Path) -> None:
    """As far as a command looks before it is asked to do anything."""
    folder.mkdir()
    folder.joinpath("secret").write_text("Zq8vT3mXw1LrC9dKfP0yHn5sGbJ7uEaU2iVo4tRk\n")
    folder.joinpath("tickwire.sqlite3").touch()


@pytest.mark.parametrize("command", ["seed_demo", "demo_login"])
@pytest.mark.parametrize(("variables", "word"), [(PRODUCTION, "PRODUCTION=1"), ({"DEMO": "0"}, "DEMO=0")])
def test_commands_of_the_demo_are_refused(
    tmp_path: Path, command: str, variables: dict[str, str], word: str
) -> None:
    prepare_data(tmp_path / "var")
    ran = manage(tmp_path / "var", command, **variables)
    assert ran.returncode == 1
    assert word in ran.stderr
    assert "Traceback" not in ran.stderr
    # It did not even look for the database, which is nowhere.
    assert "does not answer" not in ran.stderr
