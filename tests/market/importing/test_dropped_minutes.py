"""Files of days whose one-minute candles were dropped: what was made of those stays true."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from core.times import MINUTE_MS
from instruments.models import Instrument
from market.engine.importing.tally import summary
from market.models import Candle
from market.prices.candles import COARSER, TIMEFRAMES, PriceBar
from market.prices.records import Tick
from market.store.candle_rows import write_candles
from tests.factories import NOON, make_instrument
from tests.market.store.test_retention import drop_old
from tests.market.ticking import aggregate, minutes_of, ms

from .importing import Rows, import_files, rows, stored, walk, write
from .test_resuming import after

pytestmark = [pytest.mark.django_db, pytest.mark.services]

DAY = "2026-11-10"
TICKS_A_MINUTE = 3


@pytest.fixture(autouse=True)
def instrument(settings: Settings) -> Instrument:
    settings.CANDLE_DAYS = dict.fromkeys(TIMEFRAMES, 0) | {"1m": 6}
    return make_instrument("EURUSD", volume_kind="ticks")


@pytest.fixture
def day() -> list[Tick]:
    return walk(f"{DAY}T00:00", 24 * 60)


def drop(*timeframes: str) -> None:
    """All that was too old, as if younger ones had been known."""
    Candle.objects.filter(timeframe__in=("1m", *timeframes)).delete()


def coarser() -> Rows:
    return [row for row in rows() if row[0] != "1m"]


def whole(ticks: list[Tick], *timeframes: str) -> dict[str, list[PriceBar]]:
    return {name: list(aggregate(counted(ticks), COARSER[name])) for name in timeframes or COARSER}


def raised(ticks: list[Tick]) -> list[Tick]:
    return [Tick(t.symbol, round(t.bid + 0.01, 5), round(t.ask + 0.01, 5), t.time_ms) for t in ticks]


def counted(ticks: list[Tick]) -> list[PriceBar]:
    return list(minutes_of([Tick(t.symbol, t.bid, t.ask, t.time_ms, 1.0) for t in ticks]))


def known(*timeframes: str) -> dict[str, list[PriceBar]]:
    return {name: stored(name) for name in timeframes or COARSER}


def test_next_file_goes_on_within_a_day_that_was_dropped(tmp_path: Path, day: list[Tick]) -> None:
    cut = 5 * 60 * TICKS_A_MINUTE
    import_files(write(tmp_path / "january.jsonl", day[:cut]))
    drop()

    import_files(write(tmp_path / "february.jsonl", day[cut:]))

    assert known() == whole(day)


def test_hour_before_those_that_were_dropped(tmp_path: Path, day: list[Tick]) -> None:
    cut = 5 * 60 * TICKS_A_MINUTE
    import_files(write(tmp_path / "later.jsonl", day[cut:]))
    drop("5m", "15m")

    import_files(write(tmp_path / "earlier.jsonl", day[:cut]))

    assert known("1h", "4h", "1d") == whole(day, "1h", "4h", "1d")


@pytest.mark.parametrize("also", [(), ("5m",), ("5m", "15m")])
def test_corrected_hour_replaces_itself_alone(tmp_path: Path, day: list[Tick], also: tuple[str, ...]) -> None:
    first, end = 10 * 60 * TICKS_A_MINUTE, 11 * 60 * TICKS_A_MINUTE
    import_files(write(tmp_path / "day.jsonl", day))
    drop(*also)
    right = raised(day[first:end])

    import_files(write(tmp_path / "hour.jsonl", right))

    left = [name for name in COARSER if name not in also]
    assert known(*left) == whole([*day[:first], *right, *day[end:]], *left)


def test_importing_twice_changes_nothing_in_between_dropped(tmp_path: Path, day: list[Tick]) -> None:
    path = write(tmp_path / "day.jsonl", day)
    hour = write(tmp_path / "hour.jsonl", day[10 * 60 * TICKS_A_MINUTE : 11 * 60 * TICKS_A_MINUTE + 7])
    import_files(path)
    before = coarser()
    for _ in range(2):
        drop()
        import_files(hour)

    assert coarser() == before


def test_part_that_cannot_be_told_from_what_is_there_is_left_out_and_told(
    tmp_path: Path, day: list[Tick]
) -> None:
    import_files(write(tmp_path / "day.jsonl", day))
    drop("5m", "15m")
    before = coarser()
    half = raised(day[600 * TICKS_A_MINUTE : 630 * TICKS_A_MINUTE])

    tally = import_files(write(tmp_path / "half.jsonl", half))

    assert [row for row in coarser() if row[0] in ("1h", "4h", "1d")] == before
    assert tally.left == {("1h", ms(f"{DAY}T10:00"))}
    assert "1 coarser candle stays as it was, the first at 2026-11-10 10:00 (1h)" in " ".join(
        summary(tally, "EURUSD")
    )


def test_day_in_which_an_import_stopped_is_kept_until_it_goes_on(tmp_path: Path, day: list[Tick]) -> None:
    make_younger()
    path = write(tmp_path / "day.jsonl", day, line_bytes=4000)
    import_files(path, go_on=after(10))
    minutes = len(stored("1m"))
    assert 500 < minutes < 500 + 24 * 60, "it stopped within the day"

    drop_old(NOON)
    import_files(path)

    assert {name: stored(name)[: len(bars)] for name, bars in whole(day).items()} == whole(day)
    assert drop_old(NOON) == {"1m": 24 * 60}


def make_younger() -> None:
    """The last ones stay however old they are."""
    instrument = Instrument.objects.get()
    since_ms = ms("2026-11-17T00:00")
    write_candles(
        (instrument.pk, "1m", PriceBar(since_ms + n * MINUTE_MS, 1, 1, 1, 1, 1, 1, 1), "bid")
        for n in range(500)
    )
