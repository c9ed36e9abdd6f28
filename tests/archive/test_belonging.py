"""Whose archive it is: nothing is written, removed or served where that is in doubt."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command
from pytest_django import Settings

from archive.belonging import NotOurs
from archive.index import ArchiveIndex
from archive.manifests import OWNER
from archive.models import Installation
from archive.stores import ArchiveStore, DiskStore
from core.contract.errors import Overloaded
from operations.doctor.checks import why_not_written
from tests.contract.archive.stored import store_day

from .keeping import DAY, DAY_MS, fold, journal_of, manifest_of, store_of, tick, write

pytestmark = pytest.mark.django_db

LATER = datetime(2026, 11, 20, 0, 5, tzinfo=UTC)


@pytest.fixture
def archived(folder: Path) -> Path:
    """A day is archived, and a tick of the next one waits."""
    write(folder, tick(1, DAY_MS + 1_000))
    assert fold(folder) == [DAY]
    write(folder, tick(2, DAY_MS + 86_401_000), at_ms=DAY_MS + 86_400_000)
    return folder


def owner(folder: Path) -> str:
    return store_of(folder).read_owner().decode()


def other_installation() -> None:
    Installation.objects.all().delete()


def test_first_day_says_whose_archive_it_is(archived: Path) -> None:
    known = Installation.objects.get()
    assert known.is_in_archive
    assert f'"installation": "{known.name}"' in owner(archived)
    assert OWNER not in store_of(archived).listing()
    assert OWNER not in store_of(archived).marks()


def test_where_nothing_is_due_nothing_is_claimed(folder: Path) -> None:
    assert fold(folder) == []
    assert not store_of(folder).root.exists()
    assert not Installation.objects.exists()


def test_disk_that_is_not_mounted_takes_nothing(archived: Path) -> None:
    root = store_of(archived).root
    away = root.rename(root.with_name("away"))
    root.mkdir()
    with pytest.raises(NotOurs, match="Is its disk mounted"):
        fold(archived, LATER, keep_days=1)
    assert list(root.iterdir()) == []
    assert journal_of(archived).segments()
    root.rmdir()
    away.rename(root)
    assert fold(archived, LATER) == [DAY + timedelta(days=1)]


@pytest.mark.parametrize("is_due", [True, False], ids=["a day is due", "retention alone"])
def test_archive_of_another_installation_is_left_alone(archived: Path, is_due: bool) -> None:
    if not is_due:
        fold(archived, LATER)
    before = owner(archived)
    other_installation()
    with pytest.raises(NotOurs, match="another installation"):
        fold(archived, LATER, keep_days=1)
    assert owner(archived) == before
    assert manifest_of(archived).day == str(DAY)


def test_files_from_before_there_were_names_are_taken_on(archived: Path) -> None:
    store_of(archived).root.joinpath(OWNER).unlink()
    other_installation()
    assert fold(archived, LATER) == [DAY + timedelta(days=1)]
    assert Installation.objects.get().name in owner(archived)


@pytest.mark.parametrize("is_written", [False, True])
def test_killed_while_it_began_it_begins_again(folder: Path, is_written: bool) -> None:
    known = Installation.objects.begun()
    if is_written:
        store_of(folder).put_owner(
            b'{"version": 1, "installation": "%s", "began_at": ""}' % known.name.encode()
        )
    write(folder, tick(1, DAY_MS + 1_000))
    assert fold(folder) == [DAY]
    assert known.name in owner(folder)
    assert Installation.objects.get().is_in_archive


@pytest.fixture
def command(archived: Path, settings: Settings, clock: time_machine.Traveller) -> Path:
    """Typed when the next day is over."""
    clock.move_to(LATER)
    settings.VAR_DIR, settings.ARCHIVE_DIR = archived / "var", store_of(archived).root
    return archived


def test_adopting_takes_over_what_another_made(command: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other_installation()
    with pytest.raises(CommandError, match="--adopt` takes its archive over. The journal stays"):
        call_command("fold_archive")
    call_command("fold_archive", "--adopt")
    assert f"{store_of(command)} belongs to this installation now." in capsys.readouterr().out
    assert Installation.objects.get().name in owner(command)
    call_command("fold_archive", "--adopt")
    assert "belongs" not in capsys.readouterr().out


def test_adopting_mends_an_owner_that_cannot_be_read(command: Path) -> None:
    store_of(command).put_owner(b"{")
    with pytest.raises(CommandError, match="the owner of this archive is unknown"):
        call_command("fold_archive")
    call_command("fold_archive", "--adopt")
    assert Installation.objects.get().name in owner(command)


def test_owner_that_a_newer_version_wrote_is_not_taken_for_ours(command: Path) -> None:
    store = store_of(command)
    newer = store.read_owner().replace(b'"version": 1', b'"version": 2')
    store.put_owner(newer)
    with pytest.raises(CommandError, match="is of version 2, and this program reads 1"):
        call_command("fold_archive")
    with pytest.raises(CommandError, match="is of version 2"):
        call_command("fold_archive", "--adopt")
    assert store.read_owner() == newer


@pytest.mark.parametrize("name", ["verify_archive", "export_archive"])
def test_commands_do_not_take_an_empty_place_for_the_archive(
    command: Path, name: str, tmp_path: Path
) -> None:
    shutil.rmtree(store_of(command).root)
    with pytest.raises(CommandError, match="Is its disk mounted"):
        call_command(name, *([str(tmp_path / "copy")] if name == "export_archive" else []))


async def test_what_was_known_is_not_served_from_another_place(tmp_path: Path) -> None:
    store, known = store_of(tmp_path), Installation(name="ours", is_in_archive=True)
    owned = b'{"version": 1, "installation": "ours", "began_at": ""}'

    async def ours() -> Installation:
        return known

    store.put_owner(owned)
    index = ArchiveIndex(lambda: store, ours)
    await index.current()
    shutil.rmtree(store.root)
    index.forget()
    with pytest.raises(Overloaded):
        await index.current()
    store.put_owner(owned)
    index.forget()
    await index.current()


def test_doctor_writes_to_know_whether_it_can(tmp_path: Path) -> None:
    assert why_not_written(tmp_path / "not" / "yet") == ""
    assert list(tmp_path.iterdir()) == []
    assert why_not_written(Path("/proc/tickwire")) != ""


class OfflineStore:
    """Opens a store that is away until it is not."""

    def __init__(self, root: Path) -> None:
        self._store = DiskStore(root)
        self.is_away = True
        self.asked = 0

    def __call__(self) -> ArchiveStore:
        self.asked += 1
        if self.is_away:
            raise OSError("nobody is there")
        return self._store


async def nobody() -> None:
    """Nothing was archived by this installation."""


async def test_archive_is_a_503_until_it_was_seen_and_lasts_while_its_store_is_away(tmp_path: Path) -> None:
    store_day(tmp_path, "2020-11-17")
    offline = OfflineStore(tmp_path)
    index = ArchiveIndex(offline, nobody)
    for _ in range(5):
        with pytest.raises(Overloaded):
            await index.current()
    # Not asked for by each request.
    assert offline.asked == 1
    offline.is_away = False
    index.forget()
    first = (await index.current()).find("ticks/EURUSD/2020-11-17.parquet")
    assert first is not None
    store_day(tmp_path, "2020-11-18")
    assert (await index.current()).find("ticks/EURUSD/2020-11-18.parquet") is None
    index.forget()
    seen = await index.current()
    assert seen.find("ticks/EURUSD/2020-11-18.parquet")
    # Only new manifests are read.
    assert seen.find("ticks/EURUSD/2020-11-17.parquet") is first
    offline.is_away = True
    index.forget()
    assert await index.current() is seen
    assert offline.asked == 4
