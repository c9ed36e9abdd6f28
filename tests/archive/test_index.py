from __future__ import annotations

from pathlib import Path

import pytest

from archive.api.index import ArchiveIndex
from archive.stores import ArchiveStore, DiskStore
from core.contract.errors import Overloaded
from tests.contract.archive.stored import store_day


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


async def test_archive_that_was_never_seen_is_a_503_and_is_not_asked_for_by_each_request(
    tmp_path: Path,
) -> None:
    offline = OfflineStore(tmp_path)
    index = ArchiveIndex(offline, nobody)
    for _ in range(5):
        with pytest.raises(Overloaded):
            await index.current()
    assert offline.asked == 1


async def test_what_was_seen_lasts_while_the_store_is_away(tmp_path: Path) -> None:
    store_day(tmp_path, "2020-11-17")
    offline = OfflineStore(tmp_path)
    offline.is_away = False
    index = ArchiveIndex(offline, nobody)
    seen = await index.current()
    assert seen.has("EURUSD")
    offline.is_away = True
    index.forget()
    assert await index.current() is seen
    assert offline.asked == 2


async def test_only_new_manifests_are_read(tmp_path: Path) -> None:
    store_day(tmp_path, "2020-11-17")
    offline = OfflineStore(tmp_path)
    offline.is_away = False
    index = ArchiveIndex(offline, nobody)
    first = (await index.current()).find("ticks/EURUSD/2020-11-17.parquet")
    store_day(tmp_path, "2020-11-18")
    assert (await index.current()).find("ticks/EURUSD/2020-11-18.parquet") is None
    index.forget()
    days = await index.current()
    assert days.find("ticks/EURUSD/2020-11-18.parquet")
    assert days.find("ticks/EURUSD/2020-11-17.parquet") is first
