"""What the archive asks of any store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.manifests import BadPath, candles_path, manifest_path, parse, ticks_path
from archive.stores import ArchiveStore, DiskStore, NotStored, S3Store

from .buckets import store_on_loopback

TICKS, GOLD = "ticks/EURUSD/2026-11-17.parquet", "ticks/XAUUSD/2026-11-17.parquet"
MANIFEST = "manifests/2026-11-17.json"
# More than two pieces of what a bucket is asked for at once.
SIZE = 2_500_001
BODY = bytes(range(251)) * 9961


@pytest.fixture(scope="module", params=["disk", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchiveStore]:
    if request.param == "disk":
        yield DiskStore(tmp_path_factory.mktemp("archive"))
    else:
        with store_on_loopback() as bucket:
            yield S3Store(bucket)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "made"
    path.write_bytes(BODY[:SIZE])
    return path


@pytest.fixture(scope="module")
def kept(store: ArchiveStore, tmp_path_factory: pytest.TempPathFactory) -> ArchiveStore:
    """With a file in it."""
    path = tmp_path_factory.mktemp("made") / "file"
    path.write_bytes(BODY[:SIZE])
    store.put(TICKS, path)
    return store


def test_file_is_given_back_as_it_was(kept: ArchiveStore) -> None:
    assert kept.size(TICKS) == SIZE
    assert kept.read(TICKS) == BODY[:SIZE]
    blocks = list(kept.open(TICKS))
    assert b"".join(blocks) == BODY[:SIZE]
    assert max(map(len, blocks)) <= 1 << 20


@settings(max_examples=40)
@given(st.integers(0, SIZE + 9), st.integers(0, SIZE + 9) | st.none())
def test_part_is_that_slice(kept: ArchiveStore, start: int, end: int | None) -> None:
    assert b"".join(kept.open(TICKS, start, end)) == BODY[:SIZE][start:end]


def test_disk_has_whole_files_and_lists_no_others(tmp_path: Path, local: Path) -> None:
    store = DiskStore(tmp_path / "archive")
    assert store.listing() == []
    store.put(TICKS, local)
    with pytest.raises(IsADirectoryError):
        store.put(TICKS, tmp_path)
    assert store.read(TICKS) == local.read_bytes()
    folder = (store.root / TICKS).parent
    assert list(folder.iterdir()) == [store.root / TICKS]
    (folder / "2026-11-20.parquet.unfinished").write_bytes(b"half")
    (store.root / "notes.txt").write_bytes(b"somebody's")
    assert store.listing() == store.listing("ticks/EUR") == [TICKS]


def test_files_are_listed_in_order_below_a_prefix(store: ArchiveStore, local: Path) -> None:
    for path in (MANIFEST, GOLD, TICKS):
        store.put(path, local)
    assert store.listing() == [MANIFEST, TICKS, GOLD]
    assert store.listing("ticks/") == [TICKS, GOLD]
    assert store.listing("candles/") == []
    assert list(store.marks("manifests/")) == [MANIFEST]


def test_mark_changes_with_the_content_alone_and_the_local_file_stays(
    store: ArchiveStore, local: Path
) -> None:
    store.put(GOLD, local)
    assert local.read_bytes() == BODY[:SIZE]
    before = store.marks()
    assert store.marks() == before
    local.write_bytes(b"another")
    store.put(GOLD, local)
    assert {path for path, mark in store.marks().items() if mark != before.get(path)} == {GOLD}


def test_removed_file_is_gone_and_may_be_removed_again(store: ArchiveStore, local: Path) -> None:
    store.put(MANIFEST, local)
    store.remove(MANIFEST)
    store.remove(MANIFEST)
    assert MANIFEST not in store.listing()
    for ask in (store.size, store.open, store.read):
        with pytest.raises(NotStored):
            ask(MANIFEST)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "ticks/../../x/2026-11-17.parquet", "", "ticks/EURUSD/x.parquet"]
)
def test_no_other_paths_are_touched(store: ArchiveStore, local: Path, path: str) -> None:
    for ask in (store.size, store.open, store.read, store.remove):
        with pytest.raises(BadPath):
            ask(path)
    with pytest.raises(BadPath):
        store.put(path, local)


def test_owner_is_kept_beside_the_files(store: ArchiveStore) -> None:
    for path in store.listing():
        store.remove(path)
    with pytest.raises(NotStored):
        store.read_owner()
    for content in (b"ours", b"theirs"):
        store.put_owner(content)
        assert store.read_owner() == content
    assert store.listing() == []
    assert store.marks() == {}


DAY = date(2026, 11, 18)


@pytest.mark.parametrize("symbol", ["EURUSD", "BTC-USD", "BRK.B", "US_500", "0700", "A..B"])
def test_paths_are_those_that_are_documented_and_say_what_they_were_made_of(symbol: str) -> None:
    assert ticks_path(symbol, DAY) == f"ticks/{symbol}/2026-11-18.parquet"
    assert candles_path(symbol, DAY) == f"candles/1m/{symbol}/2026-11-18.parquet"
    assert manifest_path(DAY) == "manifests/2026-11-18.json"
    assert parse(ticks_path(symbol, DAY)) == ("ticks", symbol, DAY)
    assert parse(candles_path(symbol, DAY)) == ("candles", symbol, DAY)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "ticks", "ticks/EURUSD", "ticks//2026-11-18.parquet", "/ticks/EURUSD/2026-11-18.parquet"),
        *("ticks/../2026-11-18.parquet", "ticks/./2026-11-18.parquet", "ticks/.A/2026-11-18.parquet"),
        *("ticks/EURUSD/2026-02-30.parquet", "ticks/EURUSD/2026-11-18.parquet\n", "manifests/2026-11-18"),
        *(
            "candles/5m/EURUSD/2026-11-18.parquet",
            "ticks/eurusd/2026-11-18.parquet",
            "ticks/Ä/2026-11-18.parquet",
        ),
        *(
            "ticks/EURUSD/٢٠٢٦-11-18.parquet",
            "ticks/A/B/2026-11-18.parquet",
            "ticks/A\x00/2026-11-18.parquet",
        ),
    ],
)
def test_anything_else_is_no_path(path: str) -> None:
    with pytest.raises(BadPath):
        parse(path)


@pytest.mark.parametrize("symbol", ["", "..", "../A", "A/B", "a", ".A", "A\n"])
def test_a_symbol_that_could_leave_the_folder_makes_no_path(symbol: str) -> None:
    with pytest.raises(BadPath):
        ticks_path(symbol, DAY)
