"""Minutes that are made of the files alone are those that the engine stored, in every field."""

from __future__ import annotations

from datetime import date
from io import StringIO
from pathlib import Path

import duckdb
import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError

from archive.proving import DayVerdict, verify_day
from core.threads import in_thread
from core.times import MINUTE_MS
from market.models import Candle
from market.prices.candles import PriceBar
from market.prices.records import Tick
from tests.archive.keeping import (
    DAY,
    DAY_MS,
    NEXT_MS,
    NIGHT,
    KeptEngine,
    file_of,
    fold,
    manifest_of,
    store_of,
)
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db(transaction=True)
HOUR_MS = 60 * MINUTE_MS
FIELDS = ("open", "high", "low", "close", "volume", "ask_high", "ask_low", "basis", "source")


async def proved(folder: Path, day: date = DAY) -> DayVerdict:
    await in_thread(fold, folder)
    return await in_thread(verify_day, store_of(folder), day)


def holds(verdict: DayVerdict, minutes: int = 0) -> bool:
    assert verdict.faults == [], verdict.faults
    assert verdict.notes == []
    return verdict.counts["minutes"] >= 2 * minutes > 0


@pytest.mark.parametrize("candle_price", ["bid", "mid"])
@pytest.mark.parametrize("volume_kind", ["ticks", "trades"])
async def test_a_day_with_flat_minutes(
    folder: Path, settings: object, candle_price: str, volume_kind: str
) -> None:
    settings.CANDLE_PRICE = candle_price  # type: ignore[attr-defined]
    await in_thread(make_instrument, volume_kind=volume_kind, order_flow_source="tick_rule")
    async with KeptEngine(folder, candle_price=candle_price) as kept:
        at_ms = kept.walk(700, DAY_MS + HOUR_MS)
        kept.pass_time(at_ms + HOUR_MS)
        await kept.end_day()
    assert holds(await proved(folder), 100)
    flat = Candle.objects.filter(timeframe="1m", volume=0)
    assert await flat.acount() > 10


async def test_a_day_over_which_the_engine_was_killed_again_and_again(folder: Path) -> None:
    await in_thread(make_instrument)
    at_ms = DAY_MS + HOUR_MS
    for number in range(6):
        async with KeptEngine(folder) as kept:
            at_ms = kept.walk(60, at_ms, seed=number)
            await kept.write()
            # Known to the journal of the bus alone.
            at_ms = kept.walk(30, at_ms, seed=number + 100)
            if number % 2:
                await kept.kill()
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, NEXT_MS + 1_000)
        await kept.write()
    assert holds(await proved(folder), 50)
    assert file_of(folder).rows == 6 * 90


async def test_a_day_after_one_that_was_quiet_at_its_end(folder: Path, clock: time_machine.Traveller) -> None:
    await in_thread(make_instrument, stale_after_s=3_600)
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, NEXT_MS - 30_000)
        for minute in range(1, 9):
            kept.pass_time(NEXT_MS - 30_000 + minute * MINUTE_MS)
        await kept.write()
        kept.tick(1.09, NEXT_MS + HOUR_MS)
        kept.pass_time(NEXT_MS + HOUR_MS + 63_000)
        await kept.write()
    assert holds(await proved(folder), 1)
    await in_thread(fold, folder, NIGHT.replace(day=20))
    verdict = await in_thread(verify_day, store_of(folder), date(2026, 11, 19))
    assert holds(verdict, 8)


async def test_a_minute_that_is_closed_after_midnight_changes_no_file_a_night_later(
    folder: Path, clock: time_machine.Traveller
) -> None:
    await in_thread(make_instrument, stale_after_s=3_600)
    async with KeptEngine(folder) as kept:
        kept.walk(100, DAY_MS + HOUR_MS)
        kept.tick(1.08, NEXT_MS - 5 * MINUTE_MS)
        kept.pass_time(NEXT_MS + 3_000)
        kept.tick(1.09, NEXT_MS + 4_000)
        await kept.write()
        assert holds(await proved(folder), 30)
        made = manifest_of(folder)
        kept.pass_time(kept.walk(100, NEXT_MS + HOUR_MS) + MINUTE_MS + 3_000)
        await kept.write()
    await in_thread(fold, folder, NIGHT.replace(day=20))
    assert manifest_of(folder) == made
    for day in (DAY, date(2026, 11, 19)):
        assert holds(await in_thread(verify_day, store_of(folder), day), 20)


async def test_minutes_that_are_filled_in_after_the_files_were_made(
    folder: Path, clock: time_machine.Traveller
) -> None:
    await in_thread(make_instrument, source="kraken", stale_after_s=3_600)
    async with KeptEngine(folder, "kraken") as kept:
        kept.walk(60, DAY_MS + HOUR_MS)
        kept.tick(1.08, DAY_MS + 20 * HOUR_MS)
        kept.pass_time(DAY_MS + 20 * HOUR_MS + MINUTE_MS + 3_000)
        await kept.write()
        clock.move_to(NIGHT)
        assert holds(await proved(folder), 20)
        opened = DAY_MS + 20 * HOUR_MS
        bars = [
            PriceBar(opened + number * MINUTE_MS, 1.09, 1.09, 1.07, 1.08, 1.0, 1.1, 1.08)
            for number in range(1, 100)
        ]
        kept.backfill(bars, NEXT_MS + 10 * MINUTE_MS)
        await kept.write()
        kept.tick(1.08, NEXT_MS + HOUR_MS)
        await kept.write()
    await in_thread(fold, folder, NIGHT.replace(day=20))
    assert holds(await in_thread(verify_day, store_of(folder), DAY), 110)


async def test_minutes_of_which_parts_were_missed_and_one_that_came_as_a_whole(folder: Path) -> None:
    await in_thread(make_instrument, source="kraken", volume_kind="traded", order_flow_source="trades")
    async with KeptEngine(folder, "kraken") as kept:
        at_ms = DAY_MS + HOUR_MS
        kept.tick(1.08, at_ms + 5_000, volume=1.0, side=1, price=1.0801, source_seq=6)
        missed = [
            Tick("EURUSD", price, price, at_ms + after_ms, 0.5, -1, price, seq)
            for seq, (price, after_ms) in enumerate(
                [(1.0805, 20_000), (1.0803, 61_000), (1.0807, 130_000)], 7
            )
        ]
        assert kept.engine.heal("EURUSD", missed, at_ms + 131_000) == 3
        kept.runner.publish()
        kept.tick(1.0804, at_ms + 140_000, volume=1.0, side=1, price=1.0805, source_seq=10)
        again = Tick("EURUSD", 1.0806, 1.0806, at_ms + 150_000, 0.5, -1, 1.0806, 11)
        assert kept.engine.heal("EURUSD", [again], at_ms + 151_000) == 1
        kept.runner.publish()
        kept.tick(1.0804, at_ms + 181_000)
        kept.tick(1.0804, at_ms + 241_000)
        kept.engine.instruments["EURUSD"].broken.add(at_ms + 240_000)
        whole = PriceBar(at_ms + 240_000, 1.08, 1.09, 1.07, 1.0802, 7.5, 1.0901, 1.0701)
        kept.backfill([whole], at_ms + 301_000, "bid")
        await kept.end_day()
    assert holds(await proved(folder), 5)
    stored = (
        Candle.objects.filter(timeframe="1m").order_by("opened_at").values_list("volume", "close", "basis")
    )
    assert [
        (float(traded), float(close), basis) for traded, close, basis in await in_thread(list, stored)
    ] == [
        *((1.5, 1.0805, "trades"), (0.5, 1.0803, "trades"), (2.0, 1.0806, "trades")),
        *((0.0, 1.0804, "bid"), (7.5, 1.0802, "bid")),
    ]


@pytest.mark.parametrize("basis", ["trades", "bid"])
async def test_minutes_out_of_a_source_s_history(folder: Path, basis: str) -> None:
    await in_thread(make_instrument, source="kraken")
    async with KeptEngine(folder, "kraken") as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        at_ms = DAY_MS + HOUR_MS + 5 * MINUTE_MS
        bars = [
            PriceBar(DAY_MS + HOUR_MS + n * MINUTE_MS, 1.08, 1.0805, 1.07, 1.0801, n / 3, 1.0806, 1.0701)
            for n in range(1, 4)
        ]
        kept.backfill(bars, at_ms, basis)
        for minute in range(1, 4):
            kept.pass_time(at_ms + minute * MINUTE_MS + 3_000)
        kept.tick(1.09, at_ms + 10 * MINUTE_MS)
        await kept.end_day()
    assert holds(await proved(folder), 5)


async def test_a_minute_of_two_sources(folder: Path) -> None:
    await in_thread(make_instrument, source="kraken", fallback="binance", stale_after_s=2)
    async with KeptEngine(folder, "kraken") as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        kept.engine.feed_state("binance").heard(DAY_MS + HOUR_MS)
        kept.tick(1.081, DAY_MS + HOUR_MS + 20_000, origin="binance")
        kept.tick(1.082, DAY_MS + HOUR_MS + 21_000, origin="binance")
        await kept.write()
        kept.pass_time(DAY_MS + HOUR_MS + 63_000)
        await kept.write()
        kept.tick(1.082, NEXT_MS + 1_000, origin="binance")
        await kept.write()
    assert holds(await proved(folder), 1)
    assert file_of(folder, "candles").sources == ["binance", "kraken"]
    assert await Candle.objects.filter(timeframe="1m", source="kraken+binance").acount() == 1


# DuckDB, Polars and our own import read the files as they are.
TICKS = "ticks/EURUSD/2026-11-18.parquet"
COLUMNS = ("opened_at", "open", "high", "low", "close", "volume", "ask_high", "ask_low")


@pytest.fixture
async def archived(folder: Path) -> Path:
    await in_thread(make_instrument, volume_kind="trades", order_flow_source="trades")
    async with KeptEngine(folder) as kept:
        kept.walk(300, DAY_MS + 3_600_000)
        await kept.end_day(volume=1.0, side=1)
    await in_thread(fold, folder)
    return store_of(folder).root


def test_duckdb_makes_the_same_minutes(archived: Path) -> None:
    query = (
        "SELECT date_trunc('minute', time AT TIME ZONE 'UTC') AS minute, first(bid ORDER BY seq), max(bid), "
        "min(bid), last(bid ORDER BY seq) FROM read_parquet(?) GROUP BY minute ORDER BY minute"
    )
    with duckdb.connect() as connection:
        made = connection.execute(query, [f"{archived}/ticks/*/2026-11-18.parquet"]).fetchall()
    stored = Candle.objects.filter(timeframe="1m", volume__gt=0).order_by("opened_at")
    rows = stored.values_list("opened_at", "open", "high", "low", "close")
    wanted = [(at.replace(tzinfo=None), *map(float, prices)) for at, *prices in rows]
    assert made == wanted[: len(made)]
    assert len(made) > 20


def test_imported_back_it_makes_the_same_candles(archived: Path, clock: time_machine.Traveller) -> None:
    clock.move_to(NIGHT)

    def minutes() -> list[tuple[object, ...]]:
        """Of which the file has ticks."""
        own = Candle.objects.filter(timeframe="1m", opened_at__day=18, volume__gt=0)
        return list(own.order_by("opened_at").values_list(*COLUMNS))

    before = minutes()
    Candle.objects.all().delete()
    call_command("import_ticks", "EURUSD", str(archived / TICKS), stdout=StringIO())
    assert minutes() == before
    assert len(before) > 20


@pytest.mark.parametrize(
    ("path", "symbol", "says"),
    [
        ("candles/1m/EURUSD/2026-11-18.parquet", "EURUSD", "take the file under ticks/"),
        (TICKS, "GBPUSD", "holds ticks of EURUSD, not of GBPUSD"),
        (f"{TICKS}.damaged", "EURUSD", "is damaged"),
    ],
)
def test_what_cannot_be_imported_is_said(archived: Path, path: str, symbol: str, says: str) -> None:
    make_instrument("GBPUSD")
    (archived / f"{TICKS}.damaged").write_bytes((archived / TICKS).read_bytes()[:-20])
    with pytest.raises(CommandError, match=says):
        call_command("import_ticks", symbol, str(archived / path))
