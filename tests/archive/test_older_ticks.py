"""Ticks over REST further back than the engine's own files: the archive's days join on without a seam."""

from __future__ import annotations

from pathlib import Path

import pytest
import time_machine

from accounts.keys.caller import Allowances, Caller
from archive.index import archive_index
from core.contract.errors import Overloaded
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.api.ticks import find
from market.engine.tick_pages import TickPlace, WantedTicks, unpack_ticks
from tests.archive.keeping import DAY_MS, HOUR_MS, archive, file_of, store_of, tick
from tests.market.kept_ticks import keep

NOON_MS = DAY_MS + 12 * HOUR_MS
END_MS = DAY_MS + 48 * HOUR_MS
# Several share a millisecond, also where the engine's own files begin.
TICKS = [tick(seq, NOON_MS + seq // 3) for seq in range(1, 21)]


@pytest.fixture(autouse=True)
def days(eurusd: Instrument, folder: Path, clock: time_machine.Traveller) -> None:
    archive(folder, *TICKS[:12])
    clock.move_to("2026-11-19T12:00:00Z")
    archive_index.forget()


def caller(*, has_archive: bool) -> Caller:
    allowances = Allowances(tier="any", requests=1, streams=1, ai_calls=1, archive=has_archive)
    return Caller(1, 1, "anna", allowances, None, False, "1")


async def walk(limit: int, start_ms: int = 0, *, has_archive: bool = True) -> list[int]:
    seqs, after = list[int](), None
    while True:
        wanted = WantedTicks("EURUSD", start_ms, END_MS, limit, after, lambda source: True)
        found = await find(catalogue.get("EURUSD"), wanted, caller(has_archive=has_archive))
        ticks = [*unpack_ticks(found.bodies)]
        seqs += [each.seq for each in ticks]
        if not found.has_more:
            return seqs
        after = TickPlace(found.epoch, ticks[-1].seq, ticks[-1].time_ms)


@pytest.mark.parametrize("first", [1, 5, 8, 13, 16])
@pytest.mark.parametrize("limit", [1, 2, 7, 100])
async def test_walk_loses_and_repeats_none_where_the_engine_s_files_begin(limit: int, first: int) -> None:
    keep("", ("epoch", [*TICKS[first - 1 :]]))
    archived = 12 if first > 12 else first - 1
    assert await walk(limit) == [*range(1, archived + 1), *range(first, 21)]
    assert await walk(limit, NOON_MS + 3) == [
        seq for seq in [*range(1, archived + 1), *range(first, 21)] if seq >= 9
    ]


async def test_archive_is_read_alone_where_nothing_else_is_kept() -> None:
    keep("", ("epoch", []))
    assert await walk(5) == [*range(1, 13)]


async def test_tier_without_the_archive_begins_with_what_is_kept() -> None:
    keep("", ("epoch", [*TICKS[8:]]))
    assert await walk(100, has_archive=False) == [*range(9, 21)]


async def test_archive_that_is_damaged_is_an_error_and_no_shorter_walk(folder: Path) -> None:
    keep("", ("epoch", [*TICKS[8:]]))
    (store_of(folder).root / file_of(folder).path).write_bytes(b"PAR1")
    with pytest.raises(Overloaded):
        await walk(100)
    assert await walk(100, NOON_MS + 4) == [*range(12, 21)]
