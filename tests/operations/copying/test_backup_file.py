"""A backup's file is whole, its owner's alone, and takes no other's place; or it is not there."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from django.db import connection

from operations.copying.archive import ArchiveReader
from operations.copying.stores import Refused
from tests.market.postgresql import in_place

from .conftest import run

pytestmark = pytest.mark.served


def test_the_file_is_for_its_owner_and_replaces_none(backup: Callable[[str], Path]) -> None:
    path = backup("sqlite")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="is there already"):
        run("backup", path)


@pytest.mark.parametrize("folder", [".", "/", ""])
def test_a_folder_is_no_place_for_it(folder: str, filled: Callable[[str], str]) -> None:
    with in_place(filled("sqlite")), pytest.raises(CommandError, match="is there already"):
        run("backup", folder)


def test_a_full_disk_leaves_no_half_file(filled: Callable[[str], str], tmp_path: Path) -> None:
    path, before = tmp_path / "full" / "a.zip", resource.getrlimit(resource.RLIMIT_FSIZE)
    path.parent.mkdir()
    # SQLite keeps files of its own, which would meet the limit first.
    with in_place(filled("postgresql")):
        # So much that the disk is full while a table is read.
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO auth_group (name) SELECT n || repeat(md5(random()::text), 4)"
                " FROM generate_series(1, 10000) n"
            )
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(CommandError, match="File too large. No file was left behind"):
                run("backup", path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), Refused("a.zip is damaged")])
def test_what_was_not_read_again_is_not_left(
    end: BaseException, filled: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(reader: ArchiveReader) -> None:
        raise end

    monkeypatch.setattr(ArchiveReader, "verify", stop)
    path = tmp_path / "ended" / "a.zip"
    path.parent.mkdir()
    with in_place(filled("sqlite")), pytest.raises((KeyboardInterrupt, CommandError)):
        run("backup", path)
    assert list(path.parent.iterdir()) == []
