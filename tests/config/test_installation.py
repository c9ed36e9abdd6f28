"""What an installation keeps is for its owner alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from config.installation import known_secret, make_secret, tighten
from tests.databases import prepared
from tests.programs.commands import manage
from tests.programs.running import Serve, environment
from tests.programs.services import free_port

pytestmark = pytest.mark.served


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_new_folder_and_secret_are_for_the_owner_alone(tmp_path: Path) -> None:
    var_dir = tmp_path / "deep" / "var"
    make_secret(var_dir)
    secret = known_secret(var_dir)
    assert (mode(var_dir), mode(var_dir / "secret")) == ("0o700", "0o600")
    assert len(secret) == 64
    make_secret(var_dir)
    assert known_secret(var_dir) == secret


def test_folder_is_made_for_a_secret_that_is_given(tmp_path: Path) -> None:
    var_dir = tmp_path / "data"
    with Serve(var_dir, DEMO="0", SECRET_KEY="long and random") as serving:  # noqa: S106
        assert (mode(var_dir), (var_dir / "secret").exists()) == ("0o700", False)
        assert (var_dir / "tickwire.sqlite3").exists()
    assert serving.stop() == 0


def test_any_command_tightens_what_an_earlier_version_left_open(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    make_secret(var_dir)
    database = var_dir / "tickwire.sqlite3"
    database.touch()
    (tmp_path / "secret").touch()
    ended = manage(tmp_path, "check")
    assert ended.stderr.startswith(f"{tmp_path}/secret is missing or empty")
    for path, open_mode in ((var_dir, 0o755), (var_dir / "secret", 0o644), (database, 0o644)):
        path.chmod(open_mode)
    assert manage(var_dir, "check").returncode == 0
    assert [mode(path) for path in (var_dir, var_dir / "secret", database)] == ["0o700", "0o600", "0o600"]


def test_folders_of_others_and_home_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, somebodys, home = folders = [tmp_path / name for name in ("shared", "somebodys", "home")]
    monkeypatch.setenv("HOME", str(home))
    for folder, open_mode in zip(folders, (0o1777, 0o755, 0o755), strict=True):
        folder.mkdir()
        folder.chmod(open_mode)
    (shared / "secret").touch()
    make_secret(home)
    (home / "secret").chmod(0o644)
    for folder in (*folders, tmp_path / "none"):
        tighten(folder)
    assert oct(shared.stat().st_mode & 0o7777) == "0o1777"
    assert (mode(somebodys), mode(home), mode(home / "secret")) == ("0o755", "0o755", "0o600")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("left", [None, "\n"], ids=["gone", "empty"])
def test_secret_that_was_lost_is_not_replaced_by_another(left: str | None, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    prepared.copy_sqlite(tmp_path / "tickwire.sqlite3")
    if left:
        secret.write_text(left)

    for words in (("serve",), ("issue_key", "ann"), ("doctor",)):
        ended = manage(tmp_path, *words, DEMO="0")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith(f"{secret} is missing or empty, and no other opens what")
        assert (secret.read_text() if secret.exists() else None) == left
    # As it is typed to go on without it.
    anew = ended.stderr.partition("continue without them: ")[2]
    subprocess.run(["bash", "-c", anew], check=True)
    assert manage(tmp_path, "issue_key", "ann").returncode == 0


def test_what_runs_before_the_secret_is_made_reads_no_settings_and_reading_them_writes_nothing(
    tmp_path: Path,
) -> None:
    """They would have none for as long as the first start lasts."""
    unread = "from django.conf import settings\nraise SystemExit(settings.configured)"
    names = environment(tmp_path / "var", DJANGO_SETTINGS_MODULE="config.settings")
    for program in (f"import config.command_line.execution\n{unread}", "import django; django.setup()"):
        subprocess.run([sys.executable, "-c", program], env=names, check=True)
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("words", "given"), [(("issue_key", "ann"), {}), (("backup",), {"SECRET_KEY": "long and random"})]
)
def test_mistyped_folder_becomes_no_installation(
    words: tuple[str, ...], given: dict[str, str], tmp_path: Path
) -> None:
    for var_dir in (tmp_path, tmp_path / "typo"):
        ended = manage(var_dir, *words, **given)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.strip() == (
            f"Nothing is stored in {var_dir} yet. Begin with `.venv/bin/python manage.py serve`, or name the "
            "right folder with --data or VAR_DIR."
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("run_engine",), ("dumpdata",)], ids=lambda w: w[0])
def test_mistyped_address_of_sqlite_becomes_no_database(words: tuple[str, ...], tmp_path: Path) -> None:
    make_secret(tmp_path / "var")
    typo, redis = tmp_path / "typo.sqlite3", f"redis://127.0.0.1:{free_port()}/0"
    ended = manage(tmp_path / "var", *words, DATABASE_URL=f"sqlite:///{typo}", REDIS_URL=redis)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.strip() == (
        f"There is no database at {typo}. Correct DATABASE_URL, or begin with `.venv/bin/python manage.py "
        "serve`, which makes it."
    )
    asked = manage(tmp_path / "var", "doctor", DATABASE_URL=f"sqlite:///{typo}", PORT=str(free_port()))
    assert f"There is no database at {typo} yet." in asked.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "var"]


def test_backup_is_verified_where_nothing_is_installed(tmp_path: Path) -> None:
    ended = manage(tmp_path / "var", "backup", "--verify", str(tmp_path / "none.zip"))
    assert "Nothing is stored" not in ended.stderr
    assert "none.zip" in ended.stderr
    assert list(tmp_path.iterdir()) == []
