"""Whatever is not as it was archived is found, and named."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from archive.manifests import ArchiveManifest, encoded
from archive.proving import verify_day
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from market.models import Candle
from tests.archive.keeping import DAY, DAY_MS, NEXT_MS, KeptEngine, file_of, fold, manifest_of, store_of
from tests.factories import make_candle
from tests.signals_feed.published_signals import make_published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def archived(folder: Path, eurusd: object) -> Path:
    async with KeptEngine(folder) as kept:
        kept.walk(400, DAY_MS + 60 * MINUTE_MS)
        await kept.end_day()
    await in_thread(fold, folder)
    return folder


def faults(folder: Path) -> list[str]:
    return verify_day(store_of(folder), DAY).faults


def only_fault(folder: Path) -> str:
    (fault,) = faults(folder)
    return fault


def rewrite(folder: Path, **changes: Any) -> None:
    manifest = manifest_of(folder)
    fields = {name: getattr(manifest, name) for name in manifest.__struct_fields__} | changes
    path = store_of(folder).root / f"manifests/{DAY}.json"
    path.write_bytes(encoded(ArchiveManifest(**fields)))


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def put_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (flip_a_byte, "was altered: its SHA-256"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, and the manifest says"),
        (Path.unlink, "is in the manifest, and not in the archive"),
        (put_a_folder, "cannot be read: Is a directory."),
    ],
    ids=["a flipped byte", "a shorter file", "a missing file", "a folder in its place"],
)
def test_a_damaged_file_is_found(archived: Path, damage: Callable[[Path], object], says: str) -> None:
    assert faults(archived) == []
    damage(store_of(archived).root / file_of(archived).path)
    assert says in only_fault(archived)


@pytest.mark.parametrize("path", ["", "../elsewhere", "ticks/EURUSD/2026-11-19.parquet"])
def test_a_manifest_that_names_something_else_is_found(archived: Path, path: str) -> None:
    files = manifest_of(archived).files
    if path:
        files[-1].path = path
    else:
        files[-1].rows += 1
    rewrite(archived, files=files)
    says = f"names {path!r}, which is not a file of that day" if path else "rows, and the manifest says"
    assert says in only_fault(archived)


def minutes() -> Any:
    return Candle.objects.filter(timeframe="1m", opened_at__lt=moment(NEXT_MS)).order_by("opened_at")


@pytest.mark.parametrize(
    "changes",
    [
        {"high": Decimal("1.2")},
        {"volume": Decimal(7)},
        {"ask_high": Decimal("1.2")},
        {"basis": "mid"},
        {"source": "x"},
        {},
    ],
    ids=str,
)
def test_a_stored_minute_that_was_altered_or_deleted_is_found(
    archived: Path, changes: dict[str, object]
) -> None:
    first = minutes().filter(opened_at=minutes().first().opened_at)
    if changes:
        first.update(**changes)
    else:
        first.delete()
    fault = only_fault(archived)
    assert "EURUSD: Stored minutes differ from those archived" in fault or not changes
    assert next(iter(changes), "no longer in the database") in fault


def import_the_first() -> None:
    minutes().filter(opened_at=minutes().first().opened_at).update(source="import", high=Decimal("1.2"))


def fill_another() -> None:
    at = moment(DAY_MS + 23 * 60 * MINUTE_MS)
    make_candle(minutes().last().instrument, opened_at=at, source="push")


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (import_the_first, "came from an import"),
        (fill_another, "1 minutes are not compared: they were stored after the archive was made"),
        (lambda: minutes().delete(), "EURUSD: the database no longer has its minutes of that day."),
    ],
    ids=["imported", "filled since", "dropped by retention"],
)
def test_minutes_that_are_not_compared_are_said(archived: Path, act: Callable[[], object], says: str) -> None:
    act()
    verdict = verify_day(store_of(archived), DAY)
    assert verdict.faults == []
    assert says in verdict.notes[0]


def test_a_ledger_that_was_rewritten_is_found(archived: Path) -> None:
    make_published(published_at=moment(DAY_MS))
    manifest = manifest_of(archived)
    manifest.ledger.sequence, manifest.ledger.hash = 1, "0" * 64
    rewrite(archived, ledger=manifest.ledger)
    assert "Entry 1 of the ledger is not the one that ended 2026-11-18" in only_fault(archived)


def test_ticks_that_make_other_minutes_are_found(archived: Path) -> None:
    minutes().filter(opened_at=minutes().first().opened_at).update(high=Decimal("1.2"))
    (archived / "var" / "ticks" / "folded.json").unlink()
    fold(archived)
    fault = only_fault(archived)
    assert "Minutes made of its ticks differ from those archived" in fault
    assert "instead of 1.2" in fault


def run(*words: str, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*words, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_command_says_what_it_proved(archived: Path) -> None:
    said, _ = run("verify_archive")
    assert said.startswith("2026-11-18 holds: 2 files, 400 ticks, ")
    assert run("verify_archive", "--day", "2026-11-18")[0] == said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--start", "2027-01-01"], "Its days are from 2026-11-18 to 2026-11-18"),
        (["--day", "yesterday"], "not a day: write 2026-11-01"),
        (["--day", "2026-11-18", "--start", "2026-11-18"], "either --day"),
        (["--folder", "/usr"], "is not a copy of an archive: name the folder that contains ticks/"),
    ],
)
def test_days_and_folders_that_are_not_there_are_said(archived: Path, words: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        run("verify_archive", *words)


def test_files_without_a_manifest_are_found(archived: Path) -> None:
    store_of(archived).remove(f"manifests/{DAY}.json")
    assert only_fault(archived) == "There is no manifest of 2026-11-18."
    err = StringIO()
    with pytest.raises(CommandError, match="1 day does not hold"):
        call_command("verify_archive", stdout=StringIO(), stderr=err)
    said = err.getvalue()
    assert "There are files of 2026-11-18, and no manifest that names them: candles/1m/EURUSD/" in said
    assert "`fold_archive`" in said
