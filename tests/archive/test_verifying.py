"""Whatever is not as it was archived is found, and named."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from msgspec.structs import replace

from archive.manifests import ArchiveManifest, encoded
from archive.proving import verify_day
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from market.models import Candle
from tests.archive.keeping import DAY, DAY_MS, NEXT_MS, KeptEngine, file_of, fold, manifest_of, store_of
from tests.factories import make_candle, make_instrument
from tests.signals_feed.published_signals import make_published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def archived(folder: Path) -> Path:
    await in_thread(make_instrument)
    async with KeptEngine(folder) as kept:
        kept.walk(400, DAY_MS + 60 * MINUTE_MS)
        await kept.write()
        kept.tick(1.08, NEXT_MS + 1_000)
        await kept.write()
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


def test_what_was_left_alone_holds(archived: Path) -> None:
    assert faults(archived) == []


def test_a_flipped_byte_is_found(archived: Path) -> None:
    path = store_of(archived).root / file_of(archived).path
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert "was altered: its SHA-256" in only_fault(archived)


def test_a_shorter_file_is_found(archived: Path) -> None:
    path = store_of(archived).root / file_of(archived).path
    path.write_bytes(path.read_bytes()[:-1])
    assert "bytes, and the manifest says" in only_fault(archived)


def test_a_missing_file_is_found(archived: Path) -> None:
    store_of(archived).remove(file_of(archived).path)
    assert "is in the manifest, and not in the archive" in only_fault(archived)


def test_a_file_that_cannot_be_read_is_found(archived: Path) -> None:
    path = store_of(archived).root / file_of(archived).path
    path.unlink()
    path.mkdir()
    assert only_fault(archived).endswith("cannot be read: Is a directory.")


def test_a_missing_manifest_is_found(archived: Path) -> None:
    store_of(archived).remove(f"manifests/{DAY}.json")
    assert only_fault(archived) == "There is no manifest of 2026-11-18."


@pytest.mark.parametrize("path", ["../elsewhere", "ticks/EURUSD/2026-11-19.parquet"])
def test_a_manifest_that_names_what_is_not_of_its_day_is_found(archived: Path, path: str) -> None:
    files = [replace(manifest_of(archived).files[0], path=path)]
    rewrite(archived, files=files)
    assert f"names {path!r}, which is not a file of that day" in only_fault(archived)


def test_rows_that_are_counted_otherwise_are_found(archived: Path) -> None:
    files = manifest_of(archived).files
    files[-1].rows += 1
    rewrite(archived, files=files)
    assert "rows, and the manifest says" in only_fault(archived)


def minutes() -> Any:
    return Candle.objects.filter(timeframe="1m", opened_at__lt=moment(NEXT_MS)).order_by("opened_at")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("high", Decimal("1.2")),
        ("volume", Decimal(7)),
        ("ask_high", Decimal("1.2")),
        ("basis", "mid"),
        ("source", "x"),
    ],
)
def test_a_stored_minute_that_was_altered_is_found(archived: Path, field: str, value: object) -> None:
    first = minutes().first()
    minutes().filter(opened_at=first.opened_at).update(**{field: value})
    fault = only_fault(archived)
    assert "EURUSD: Stored minutes differ from those archived" in fault
    assert field in fault


def test_a_stored_minute_that_was_deleted_is_found(archived: Path) -> None:
    minutes().filter(opened_at=minutes().first().opened_at).delete()
    assert "no longer in the database" in only_fault(archived)


def test_minutes_that_retention_dropped_are_no_fault(archived: Path) -> None:
    minutes().delete()
    verdict = verify_day(store_of(archived), DAY)
    assert verdict.faults == []
    assert verdict.notes == ["EURUSD: the database no longer has its minutes of that day."]


def test_a_minute_that_was_filled_since_is_no_fault(archived: Path) -> None:
    last = minutes().last()
    make_candle(last.instrument, opened_at=moment(DAY_MS + 23 * 60 * MINUTE_MS), source="push")
    verdict = verify_day(store_of(archived), DAY)
    assert verdict.faults == []
    assert "1 minutes are not compared: they were stored after the archive was made" in verdict.notes[0]


def test_an_imported_minute_is_no_fault_and_is_said(archived: Path) -> None:
    minutes().filter(opened_at=minutes().first().opened_at).update(source="import", high=Decimal("1.2"))
    verdict = verify_day(store_of(archived), DAY)
    assert verdict.faults == []
    assert "came from an import" in verdict.notes[0]


def test_a_ledger_that_was_rewritten_is_found(archived: Path) -> None:
    make_published(published_at=moment(DAY_MS))
    manifest = manifest_of(archived)
    manifest.ledger.sequence, manifest.ledger.hash = 1, "0" * 64
    rewrite(archived, ledger=manifest.ledger)
    assert "Entry 1 of the ledger is not the one that ended 2026-11-18" in only_fault(archived)


def test_ticks_that_make_other_minutes_are_found(archived: Path) -> None:
    """Its digests are right: the file of candles was made of another database."""
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


def test_the_command_ends_with_an_error_where_something_differs(archived: Path) -> None:
    store_of(archived).remove(file_of(archived).path)
    with pytest.raises(CommandError, match="1 day does not hold"):
        run("verify_archive")


def test_days_that_are_not_there_are_said(archived: Path) -> None:
    with pytest.raises(CommandError, match="Its days are from 2026-11-18 to 2026-11-18"):
        run("verify_archive", "--start", "2027-01-01")
    with pytest.raises(CommandError, match="not a day: write 2026-11-01"):
        run("verify_archive", "--day", "yesterday")
    with pytest.raises(CommandError, match="either --day"):
        run("verify_archive", "--day", "2026-11-18", "--start", "2026-11-18")


def test_a_folder_that_is_no_copy_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match="is not a copy of an archive: name the folder that contains ticks/"
    ):
        run("verify_archive", "--folder", str(tmp_path))


def test_files_without_a_manifest_are_found(archived: Path) -> None:
    store_of(archived).remove(f"manifests/{DAY}.json")
    err = StringIO()
    with pytest.raises(CommandError, match="1 day does not hold"):
        call_command("verify_archive", stdout=StringIO(), stderr=err)
    assert (
        "There are files of 2026-11-18, and no manifest that names them: candles/1m/EURUSD/" in err.getvalue()
    )
    assert "`fold_archive`" in err.getvalue()


def test_files_that_the_manifest_does_not_name_are_said(archived: Path) -> None:
    (store_of(archived).root / "ticks" / "GBPUSD").mkdir()
    (store_of(archived).root / f"ticks/GBPUSD/{DAY}.parquet").write_bytes(b"put before a run was killed")
    said, _ = run("verify_archive")
    assert said.startswith("2026-11-18 holds: 2 files")
    assert f"Not named by the manifest, so not proved: ticks/GBPUSD/{DAY}.parquet. A run" in said
