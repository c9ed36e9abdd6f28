"""The commands of docs/operate/backup.md, from the first to the last."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from signals_feed.ledger.verify import verify
from tests.documents.commands import sub_commands
from tests.factories import make_user
from tests.market.postgresql import in_place
from tests.operations.copying.conftest import run

NAMED = ("/srv/backups", "/srv/tickwire", "postgresql://tickwire@db.example.com/tickwire")


def test_each_command_of_the_page_does_what_it_says(
    filled: Callable[[str], str],
    new_database: Callable[..., str],
    tmp_path: Path,
    settings: object,
) -> None:
    settings.VAR_DIR = tmp_path  # type: ignore[attr-defined]
    source, empty = filled("sqlite"), new_database("sqlite", is_migrated=False)
    target = new_database("postgresql", is_migrated=False)
    (tmp_path / "tickwire.sqlite3").symlink_to(source.removeprefix("sqlite:///"))
    ran = []
    for line in sub_commands("backup.md"):
        for name, ours in zip(NAMED, (tmp_path, tmp_path, target), strict=True):
            line = line.replace(name, str(ours))
        words = shlex.split(line)
        ran.append(words[0])
        words += ["--on-target"] * (words[0] == "move")
        with in_place({"backup": source, "restore": empty, "move": target}[words[0]]):
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
