from __future__ import annotations

from pathlib import Path

import pytest

from archive.layout import BadPath
from archive.stores import DiskStore, NotStored

PATH = "ticks/EURUSD/2026-11-18.parquet"


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "archive")


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "local"
    path.write_bytes(bytes(range(256)) * 4_000)
    return path


def test_what_was_put_is_read_and_the_original_stays(store: DiskStore, local: Path) -> None:
    store.put(PATH, local)
    assert store.read(PATH) == local.read_bytes()
    assert store.size(PATH) == local.stat().st_size


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, None), (10, 20), (0, 1), (1_000_000, None), (5, 5), (7, 3), (0, 10**9), (10**9, None)],
)
def test_a_range_is_that_of_the_bytes(store: DiskStore, local: Path, start: int, end: int | None) -> None:
    store.put(PATH, local)
    assert (
        b"".join(store.open(PATH, start, end))
        == local.read_bytes()[start : max(start, end) if end is not None else None]
    )


def test_what_is_put_again_takes_the_place(store: DiskStore, local: Path, tmp_path: Path) -> None:
    store.put(PATH, local)
    other = tmp_path / "other"
    other.write_bytes(b"other")
    store.put(PATH, other)
    assert store.read(PATH) == b"other"
    assert store.listing() == [PATH]


def test_a_copy_that_broke_off_leaves_what_was_there(store: DiskStore, local: Path, tmp_path: Path) -> None:
    store.put(PATH, local)
    with pytest.raises(IsADirectoryError):
        store.put(PATH, tmp_path)
    assert store.read(PATH) == local.read_bytes()
    assert [path.name for path in (store.root / PATH).parent.iterdir()] == ["2026-11-18.parquet"]


def test_what_is_not_there_is_said_before_a_block_is_asked_for(store: DiskStore) -> None:
    for ask in (store.open, store.read, store.size):
        with pytest.raises(NotStored):
            ask(PATH)
    store.remove(PATH)


def test_listing_is_in_order_and_has_only_files_of_the_archive(store: DiskStore, local: Path) -> None:
    paths = [
        "manifests/2026-11-18.json",
        "ticks/A/2026-11-18.parquet",
        "ticks/A/2026-11-19.parquet",
        "ticks/AB/2026-11-18.parquet",
    ]
    assert store.listing() == []
    for path in reversed(paths):
        store.put(path, local)
    (store.root / "ticks" / "A" / "2026-11-20.parquet.unfinished").write_bytes(b"half")
    (store.root / "notes.txt").write_bytes(b"somebody's")
    assert store.listing() == paths
    assert store.listing("ticks/A/") == paths[1:3]
    assert store.listing("ticks/A") == paths[1:]
    assert store.listing("candles/") == []


def test_what_was_removed_is_gone(store: DiskStore, local: Path) -> None:
    store.put(PATH, local)
    store.remove(PATH)
    assert store.listing() == []


@pytest.mark.parametrize("path", ["../secret", "ticks/../../secret", "/etc/passwd"])
def test_nothing_outside_is_reached(store: DiskStore, local: Path, path: str) -> None:
    for ask in (store.open, store.read, store.size, store.remove):
        with pytest.raises(BadPath):
            ask(path)
    with pytest.raises(BadPath):
        store.put(path, local)
