"""The last release is upgraded; which one that is, and what is said where its code is not at hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import ROOT
from tools.lint.migrations.last import Release, last_release

from .upgrading import ReleaseMissing, mixed, over, unpack


@pytest.mark.row("upgrade", "nothing acknowledged lost, no connection closed without notice")
async def test_an_upgrade_loses_nothing(tmp_path: Path, tell: Tell) -> None:
    await over(mixed, tmp_path, tell)


release = pytest.mark.row("upgrade", "the release under test is exactly what was committed")


@release
def test_a_missing_release_commit_is_named_with_the_command_to_fetch_it(tmp_path: Path) -> None:
    unknown = Release("9.9.9", "0123456789abcdef0123456789abcdef01234567")
    with pytest.raises(ReleaseMissing, match="`git fetch --unshallow` brings all") as found:
        unpack(unknown, tmp_path)
    assert "9.9.9 (0123456789ab)" in str(found.value)


@release
def test_the_recorded_migrations_of_the_release_match_its_commit(tmp_path: Path) -> None:
    code = unpack(last_release(), tmp_path)
    apps = sorted(path.parent.name for path in code.glob("*/migrations"))
    last = [(app, max(each.stem for each in (code / app / "migrations").glob("0*.py"))) for app in apps]
    assert list(last_release().migrations) == last


@release
def test_the_unpacked_release_is_identical_to_its_commit(tmp_path: Path) -> None:
    unpack(last_release(), tmp_path)
    shown = subprocess.run(
        ["git", "show", f"{last_release().commit}:manage.py"], cwd=ROOT, capture_output=True, check=True
    )
    assert (tmp_path / "manage.py").read_bytes() == shown.stdout
