"""What is copied out of the archive: all that is whole, and never into the archive itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from archive.manifests import OWNER, ArchiveManifest, decoded, encoded
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.models import WithheldSource
from market.models import Candle
from tests.archive.keeping import DAY, DAY_MS, NEXT_MS, KeptEngine, fold, store_of
from tests.archive.test_verifying import put_a_folder, run
from tests.factories import make_instrument
from tests.programs.commands import manage

pytestmark = pytest.mark.django_db(transaction=True)
SYMBOLS = ("EURUSD", "GBPUSD")
EURUSD, GBPUSD = (f"ticks/{symbol}/{DAY}.parquet" for symbol in SYMBOLS)
MANIFEST = f"manifests/{DAY}.json"


@pytest.fixture
async def archived(folder: Path) -> Path:
    """The archive's root, with a day of two symbols."""
    for symbol in SYMBOLS:
        await in_thread(make_instrument, symbol)
    async with KeptEngine(folder) as kept:
        for number in range(90):
            for symbol in SYMBOLS:
                at_ms = DAY_MS + 60 * MINUTE_MS + number * 7_000
                kept.tick((10_800 + number) / 1e4, at_ms, symbol=symbol)
        await kept.write()
        for symbol in SYMBOLS:
            kept.tick(1.08, NEXT_MS + 1_000, symbol=symbol)
        await kept.write()
    await in_thread(fold, folder)
    return store_of(folder).root


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "exported"


def contents(folder: Path) -> dict[str, bytes]:
    """Whose archive it is, is not copied."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != OWNER)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def exported(to: Path) -> ArchiveManifest:
    return decoded((to / MANIFEST).read_bytes())


def refusal(*words: object) -> tuple[str, list[str]]:
    """How the command ends, and the faults that it names."""
    err = StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("export_archive", *map(str, words), stdout=StringIO(), stderr=err)
    return str(raised.value), err.getvalue().splitlines()


def test_what_is_exported_is_proved_without_the_database(archived: Path, to: Path) -> None:
    assert "4 files of 1 days" in run("export_archive", str(to))[0]
    assert contents(to) == contents(archived)
    Candle.objects.all().delete()
    assert "holds: 4 files, 180 ticks" in run("verify_archive", "--folder", str(to))[0]
    # Again it copies what is missing, and nothing else.
    (to / EURUSD).unlink()
    run("export_archive", str(to), "--symbols", "eurusd")
    assert contents(to) == contents(archived)
    # A whole copy stays though the original is damaged.
    whole = contents(to)
    (archived / EURUSD).unlink()
    run("export_archive", str(to))
    assert contents(to) == whole


@pytest.mark.served
@pytest.mark.parametrize("option", ["--folder={}", "--folder {}"])
def test_a_copy_is_proved_where_nothing_is_installed(archived: Path, tmp_path: Path, option: str) -> None:
    copy, nowhere = tmp_path / "elsewhere" / "copy", tmp_path / "elsewhere" / "var"
    run("export_archive", str(copy))
    # On a disk that nobody may write to.
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in copy.parent.rglob("*")}
    words = option.format(copy).split()
    proved = manage(nowhere, "verify_archive", *words, DATABASE_URL="", DEMO="")
    says = f"{DAY} holds: 4 files, 180 ticks, 22 minutes, 0 signals proved.\n"
    assert (proved.returncode, proved.stdout, proved.stderr) == (0, says, "")
    refused = manage(nowhere, "verify_archive")
    assert "Nothing is stored in" in refused.stderr
    assert {path: path.stat().st_mtime_ns for path in copy.parent.rglob("*")} == before


def test_nothing_that_may_not_be_handed_on_is_exported_or_named_any_more(archived: Path, to: Path) -> None:
    run("export_archive", str(to))
    WithheldSource.objects.create(name="push")
    assert "Left out: ticks/EURUSD" in run("export_archive", str(to))[0]
    assert exported(to).files == []
    assert (to / EURUSD).exists()
    said, _ = run("export_archive", str(to / "new"))
    assert "0 files" in said
    assert "whose source may not be passed on" in said
    assert not (to / "new").exists()


def test_an_unknown_symbol_is_said(archived: Path, to: Path) -> None:
    assert refusal(to, "--symbols", "XAUUSD")[0] == "No file of XAUUSD is archived in this span."
    run("export_archive", str(to))
    assert refusal(to, "--symbols", "XAUUSD")[0] == "No file of XAUUSD is archived in this span."
    assert "No file of XAUUSD is" in run("export_archive", str(to), "--symbols", "XAUUSD", "EURUSD")[0]


@pytest.mark.parametrize(
    "place", [".", "copy", "ticks/EURUSD", "../var/ticks", "../var", "../link", "../link/copy", "../to"]
)
def test_the_archive_itself_and_links_to_it_are_no_target(archived: Path, place: str) -> None:
    (archived.parent / "link").symlink_to(archived)
    (archived.parent / "to").mkdir()
    (archived.parent / "to" / "manifests").symlink_to(archived / "manifests")
    before = contents(archived.parent)
    assert "lie in one another" in refusal(archived / place, "--symbols", "EURUSD")[0]
    assert contents(archived.parent) == before


@pytest.mark.parametrize("left", ["altered since", "without its manifest"])
def test_a_second_export_adds_to_the_first(archived: Path, to: Path, left: str) -> None:
    run("export_archive", str(to), "--symbols", "EURUSD")
    assert {file.symbol for file in exported(to).files} == {"EURUSD"}
    if left == "altered since":
        (to / EURUSD).write_bytes(b"altered since")
    else:
        (to / MANIFEST).unlink()
    said, _ = run("export_archive", str(to), "--symbols", "GBPUSD")
    assert "4 files of 1 days" in said
    assert contents(to) == contents(archived)


def test_a_copy_that_the_archive_does_not_name_stays_and_is_said(archived: Path, to: Path) -> None:
    run("export_archive", str(to))
    made = decoded((archived / MANIFEST).read_bytes())
    made.files = [file for file in made.files if file.path != EURUSD]
    (archived / MANIFEST).write_bytes(encoded(made))
    assert f"No longer named: {EURUSD}, which" in run("export_archive", str(to))[0]
    assert (to / EURUSD).exists()
    assert (
        f"Not named by the manifest, so not proved: {EURUSD}."
        in run("verify_archive", "--folder", str(to))[0]
    )


def test_a_manifest_of_the_folder_that_cannot_be_read_is_said(archived: Path, to: Path) -> None:
    (to / MANIFEST).parent.mkdir(parents=True)
    (to / MANIFEST).write_bytes(b"{")
    said, (fault,) = refusal(to)
    assert said.startswith("1 fault: ")
    assert f"{to / MANIFEST} cannot be used" in fault
    assert "remove it and export again" in fault
    assert contents(to) == {MANIFEST: b"{"}
    # Another archive that is in use is no target either.
    (to / OWNER).write_text("{}")
    assert "is an archive that is in use" in refusal(to)[0]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (Path.unlink, "and not in the archive"),
        (lambda path: path.write_bytes(b"another"), "was altered"),
        (put_a_folder, "cannot be read"),
    ],
)
def test_export_goes_past_damaged_ticks_and_its_manifest_says_so(
    archived: Path, to: Path, damage: Callable[[Path], object], says: str
) -> None:
    whole = (archived / EURUSD).read_bytes()
    damage(archived / EURUSD)
    said, (fault,) = refusal(to)
    assert said == "1 fault: what is damaged was left out, and the rest is copied."
    assert EURUSD in fault
    assert says in fault
    assert set(contents(to)) == set(contents(archived)) - {EURUSD} | {MANIFEST}
    made = exported(to)
    assert (len(made.files), made.complete) == (3, False)
    (hole,) = made.holes
    assert (hole.symbol, hole.missing, hole.lost) == ("EURUSD", 90, True)
    assert (hole.start, hole.end) == ("2026-11-18T00:00:00.000Z", "2026-11-19T00:00:00.000Z")
    proved, _ = run("verify_archive", "--folder", str(to))
    assert "holds: 3 files, 90 ticks" in proved
    assert "Ticks are missing of EURUSD" in proved
    if damage is put_a_folder:
        (archived / EURUSD).rmdir()
    (archived / EURUSD).write_bytes(whole)
    run("export_archive", str(to))
    assert contents(to) == contents(archived)


def test_damaged_candles_leave_the_copy_incomplete(archived: Path, to: Path) -> None:
    (archived / "candles/1m/EURUSD" / f"{DAY}.parquet").unlink()
    refusal(to)
    assert (exported(to).complete, exported(to).holes) == (False, [])
    assert "Candles are missing" in run("verify_archive", "--folder", str(to))[0]


def test_a_hole_of_a_symbol_without_files_is_exported(archived: Path, to: Path) -> None:
    (archived / EURUSD).unlink()
    refusal(archived.parent / "first")
    (archived / MANIFEST).write_bytes((archived.parent / "first" / MANIFEST).read_bytes())
    made = decoded((archived / MANIFEST).read_bytes())
    made.files = [file for file in made.files if file.symbol != "EURUSD"]
    (archived / MANIFEST).write_bytes(encoded(made))
    run("export_archive", str(to))
    assert [hole.symbol for hole in exported(to).holes] == ["EURUSD"]


@pytest.mark.parametrize("content", [None, b"{", b"other day"])
def test_export_goes_on_after_a_day_whose_manifest_cannot_be_used(
    archived: Path, to: Path, content: bytes | None
) -> None:
    before = archived / f"ticks/EURUSD/{DAY.replace(day=17)}.parquet"
    before.write_bytes(b"ticks")
    if content is not None:
        body = content if content == b"{" else (archived / MANIFEST).read_bytes()
        (archived / "manifests/2026-11-17.json").write_bytes(body)
    said, (fault,) = refusal(to)
    assert said.startswith("1 fault: ")
    assert "2026-11-17" in fault
    assert set(contents(to)) == {path for path in contents(archived) if "2026-11-18" in path}
    assert "holds: 4 files" in run("verify_archive", "--folder", str(to))[0]


def test_an_interrupted_export_leaves_nothing_half_and_touches_nothing_foreign(
    archived: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ("notes.txt", "manifests/2026-11-17.json", "ticks/EURUSD/2026-11-17.parquet")
    foreign = dict.fromkeys((*others, f"{others[2]}.unfinished"), b"another's")
    for path, body in foreign.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(body)

    def interrupted(source: BinaryIO, copy: BinaryIO, block: int) -> None:
        copy.write(source.read(10))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("export_archive", str(to))
    assert contents(to) == foreign
    # What an earlier one left under the name of a file is written anew.
    (to / f"{EURUSD}.unfinished").write_bytes(b"half")
    run("export_archive", str(to))
    assert contents(to) == foreign | contents(archived)
