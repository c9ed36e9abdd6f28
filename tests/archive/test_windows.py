"""The archived ticks that go into the bundle of a publisher: all of a stretch of time, or none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from archive.folding.day_files import merged
from archive.folding.parquet import write_table
from archive.proving.verify import ArchivedWindows, day_of, days_between
from market.prices.records import TickAccepted
from signals_feed.exits import Tick
from signals_feed.record import iso
from tests.archive.keeping import DAY_MS, HOUR_MS, archive, file_of, store_of, tick

pytestmark = pytest.mark.usefixtures("eurusd")
NOON_MS = DAY_MS + 12 * HOUR_MS
PUBLISH = {"symbol": "EURUSD", "evidence": None}


def accepted(seq: int, at_ms: int, **known: Any) -> TickAccepted:
    """A little later than its source dates it."""
    return replace(tick(seq, at_ms), accepted_ms=at_ms + 300, **known)


def test_ticks_are_those_that_were_accepted_in_between_with_all_that_judges_them(folder: Path) -> None:
    late = accepted(3, NOON_MS + 20, settled=False, unsettled_ms=70, key="K1")
    archive(folder, accepted(1, NOON_MS), accepted(2, NOON_MS + 10), late, accepted(4, NOON_MS + 30))
    bid, ask = Decimal("1.08"), Decimal("1.0801")
    assert ArchivedWindows()(PUBLISH, NOON_MS + 310, NOON_MS + 320) == [
        Tick(bid, ask, NOON_MS + 10, "epoch", 2, NOON_MS + 310, "kraken"),
        Tick(bid, ask, NOON_MS + 20, "epoch", 3, NOON_MS + 320, "push:K1", False, 70),
    ]
    # The next day is not archived, and ticks of these seconds may be dated in it.
    assert ArchivedWindows()(PUBLISH, NOON_MS, DAY_MS + 24 * HOUR_MS - 1_000) is None
    assert ArchivedWindows()(PUBLISH | {"symbol": "GBPUSD"}, NOON_MS, NOON_MS + 500) is None


@pytest.mark.parametrize(("ahead_ms", "hour"), [(HOUR_MS, 0), (-HOUR_MS, 23)])
def test_days_are_those_of_the_venue_s_clock_and_of_one_that_is_an_hour_away(
    ahead_ms: int, hour: int
) -> None:
    at_ms = DAY_MS + hour * HOUR_MS + HOUR_MS // 2
    publish = PUBLISH | {"published_at": iso(at_ms), "evidence": {"at": iso(at_ms - ahead_ms)}}
    both = sorted((day_of(at_ms), day_of(at_ms - ahead_ms)))
    assert [*days_between(publish, at_ms, at_ms)] == both
    assert both[0] < both[1]


def test_day_with_ticks_that_do_not_say_when_they_were_accepted_is_not_used(folder: Path) -> None:
    archive(folder, accepted(1, NOON_MS), tick(2, NOON_MS + 10))
    assert ArchivedWindows()(PUBLISH, NOON_MS, NOON_MS + 500) is None


def test_file_of_before_takes_what_comes_late(folder: Path) -> None:
    """It does not have the columns by which signals are judged."""
    archive(folder, accepted(1, NOON_MS), accepted(2, NOON_MS + 10))
    table = pq.read_table(store_of(folder).root / file_of(folder).path)
    old, late, both = (folder / name for name in ("old", "late", "both"))
    about = {"minutes": [], "candle_price": ["bid"], "before": None}
    lacking = ["accepted_ms", "feed", "settled", "unsettled_ms"]
    write_table(old, table.slice(0, 1).drop_columns(lacking), about)
    write_table(late, table.slice(1, 1), about)
    assert merged(late, old, both, []).rows == 2
    assert pq.read_table(both)["accepted_ms"].to_pylist() == [None, NOON_MS + 310]
