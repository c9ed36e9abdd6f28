"""DuckDB, Polars and our own import read the files as they are."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import duckdb
import polars as pl
import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError

from core.threads import in_thread
from market.models import Candle
from tests.archive.keeping import DAY_MS, NIGHT, KeptEngine, fold, store_of
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db(transaction=True)
TICKS = "ticks/EURUSD/2026-11-18.parquet"
FIELDS = ("opened_at", "open", "high", "low", "close", "volume", "ask_high", "ask_low")


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


def test_polars_reads_times_as_utc_and_names_as_text(archived: Path) -> None:
    frame = pl.read_parquet(archived / TICKS)
    assert frame.height == 300
    assert frame["time"].dtype == pl.Datetime("ms", "UTC")
    assert frame["source"].cast(pl.String).unique().to_list() == ["push"]
    assert frame["seq"].to_list() == list(range(1, 301))
    assert set(frame["side"].to_list()) == {-1, 1}
    candles = pl.read_parquet(archived / "candles/1m/EURUSD/2026-11-18.parquet")
    assert candles["volume"].sum() == pytest.approx(frame["volume"].sum())


def test_imported_back_it_makes_the_same_candles(archived: Path, clock: time_machine.Traveller) -> None:
    clock.move_to(NIGHT)

    def minutes() -> list[tuple[object, ...]]:
        """Of which the file has ticks."""
        own = Candle.objects.filter(timeframe="1m", opened_at__day=18, volume__gt=0)
        return list(own.order_by("opened_at").values_list(*FIELDS))

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
