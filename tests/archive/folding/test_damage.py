"""What was damaged or is gone is never passed for data, and never for nothing."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from archive.folding.day_files import NotUsable
from archive.journal.frames import SIZES
from archive.proving import verify_day
from archive.stores import DiskStore
from tests.archive.keeping import (
    DAY,
    DAY_MS,
    HOUR_MS,
    NIGHT,
    archive,
    file_of,
    fold,
    holes,
    journal_of,
    manifest_of,
    seqs,
    store_of,
    tick,
    write,
)

pytestmark = pytest.mark.usefixtures("eurusd")
AFTER = NIGHT + timedelta(days=1)
LOST = ("00:00:00", "00:00:00", 59)


@pytest.fixture
def late(folder: Path, eurusd: object) -> Path:
    """A day has its file, and ticks of it come after that."""
    archive(folder, *(tick(seq, DAY_MS + seq) for seq in range(1, 60)))
    at_ms = DAY_MS + HOUR_MS
    write(folder, *(tick(seq, at_ms + seq) for seq in range(64, 69)), began=59, at_ms=DAY_MS + 60)
    return folder


def stored(folder: Path) -> Path:
    return store_of(folder).root / f"ticks/EURUSD/{DAY}.parquet"


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_damaged_file_gets_no_new_digest(late: Path) -> None:
    # In a page of values; Parquet notices nothing there.
    flip(stored(late), 300)
    data, before = stored(late).read_bytes(), manifest_of(late)
    for _ in range(2):
        with pytest.raises(NotUsable, match="its SHA-256 is .* remove it, which costs the ticks") as raised:
            fold(late, AFTER)
        assert ".." not in str(raised.value)
    assert (manifest_of(late), stored(late).read_bytes()) == (before, data)
    assert journal_of(late).segments() != []


def test_a_file_that_is_gone_is_a_hole(late: Path, caplog: pytest.LogCaptureFixture) -> None:
    stored(late).unlink()
    fold(late, AFTER)
    assert seqs(late) == [64, 65, 66, 67, 68]
    assert holes(late) == [LOST, ("00:00:00", "01:00:00", 4)]
    assert f"ticks/EURUSD/{DAY}.parquet is gone: its ticks (59) are a hole" in caplog.text
    verdict = verify_day(store_of(late), DAY)
    assert (verdict.faults, verdict.counts["ticks"]) == ([], 5)
    assert "Ticks are missing of EURUSD" in verdict.notes[0]


def test_other_ticks_fill_no_hole_of_a_file_that_is_gone(late: Path, tmp_path: Path) -> None:
    stored(late).unlink()
    fold(late, AFTER)
    other = tmp_path / "other"
    other.mkdir()
    (other / "archive").symlink_to(late / "archive")
    at_ms = DAY_MS + HOUR_MS
    more = [*range(60, 64), *range(69, 200)]
    write(other, *(tick(seq, at_ms + seq) for seq in more), began=59, at_ms=DAY_MS + 60)
    fold(other, AFTER)
    assert seqs(late) == list(range(60, 200))
    assert LOST in holes(late)


class StoppedStore(DiskStore):
    """The disk is full when it comes to this manifest."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(root)
        self._left = number

    def put(self, path: str, local: Path) -> None:
        if path.startswith("manifests/"):
            self._left -= 1
            if not self._left:
                raise OSError(28, "No space left on device")
        super().put(path, local)


def fold_stopped(folder: Path, number: int, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as patched:
        patched.setattr("tests.archive.keeping.store_of", lambda _: StoppedStore(folder / "archive", number))
        with pytest.raises(OSError, match="No space left"):
            fold(folder, AFTER)


def test_a_file_that_was_replaced_before_its_manifest_is_not_damaged(
    late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(late).read_bytes()
    for _ in range(2):
        fold_stopped(late, 1, monkeypatch)
        assert stored(late).read_bytes() != before
    fold(late, AFTER)
    assert seqs(late) == [*range(1, 60), *range(64, 69)]
    assert verify_day(store_of(late), DAY).faults == []
    assert not (journal_of(late).path / "handed.json").exists()


def test_what_is_gone_stays_a_hole_when_the_night_is_stopped(
    late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(late).unlink()
    fold_stopped(late, 2, monkeypatch)
    assert seqs(late) == [64, 65, 66, 67, 68]
    fold(late, AFTER)
    assert LOST in holes(late)
    assert file_of(late).rows == 5


@pytest.mark.parametrize("byte", [2, SIZES + 40])
def test_a_damaged_frame_costs_its_own_ticks(
    folder: Path, caplog: pytest.LogCaptureFixture, byte: int
) -> None:
    write(folder, *(tick(seq, DAY_MS + seq * 1000) for seq in range(1, 1501)))
    (segment,) = [each.path for each in journal_of(folder).segments()]
    whole = segment.read_bytes()
    # The second of three frames.
    start = whole.index(b"\x93\x01", whole.index(b"\x93\x01") + 1) - SIZES
    size = SIZES + int.from_bytes(whole[start : start + 4], "big")
    flip(segment, start + byte)
    with caplog.at_level(logging.WARNING):
        fold(folder)
    assert seqs(folder) == [*range(1, 501), *range(1001, 1501)]
    assert holes(folder) == [("00:08:20", "00:16:41", 500)]
    aside = segment.with_name(f"{segment.name}.damaged")
    assert aside.stat().st_size == len(whole)
    (said,) = caplog.messages
    assert f"Not read: {size} bytes at byte {start}. The segment is kept as {aside}" in said
    assert journal_of(folder).segments() == []


def test_a_segment_without_its_head_is_kept_aside(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1))
    write(folder, tick(2, DAY_MS + 2), began=1)
    write(folder, tick(3, DAY_MS + 3), began=2, at_ms=DAY_MS + 3)
    second = journal_of(folder).segments()[1].path
    flip(second, SIZES + 3)
    fold(folder)
    assert seqs(folder) == [1, 3]
    assert [missing for *_, missing in holes(folder)] == [1]
    assert second.with_name(f"{second.name}.damaged").exists()


def test_a_torn_end_is_ordinary(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(folder, tick(1, DAY_MS + 1))
    (segment,) = journal_of(folder).segments()
    with segment.path.open("ab") as file:
        file.write(b"\0\0\1\0" + b"\x93\x01" * 20)
    with caplog.at_level(logging.WARNING):
        fold(folder)
    assert (seqs(folder), caplog.records) == ([1], [])
    assert list(journal_of(folder).path.glob("*.damaged")) == []
