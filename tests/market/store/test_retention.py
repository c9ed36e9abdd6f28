"""How long candles are kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest
import time_machine
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from core.background import cancel_and_wait
from core.threads import in_thread
from instruments.models import Instrument
from market.models import Candle, UnfinishedImport
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.history import KEPT
from market.store import candle_rows, market_tables, retention
from tests.factories import NOON, make_instrument
from tests.market.ticking import HOUR_MS, NOON_MS, ms
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

FOR_GOOD = dict.fromkeys(TIMEFRAMES, 0)


@pytest.fixture(autouse=True)
def _two_days(settings: Settings) -> None:
    """What opened before the 16th is too old at noon of the 18th."""
    settings.CANDLE_DAYS = FOR_GOOD | {"1m": 2}


def drop_old(now: datetime) -> dict[str, int]:
    """Delete what is too old; returns how many candles of each timeframe that were."""
    removed: Counter[str] = Counter()
    for timeframe, number in retention.steps(now):
        removed[timeframe] += number
    return dict(removed)


def write(instrument: Instrument, *opened: str | int, timeframe: str = "1m") -> None:
    times = [at if isinstance(at, int) else ms(at) for at in opened]
    rows = ((instrument.pk, timeframe, PriceBar(at, 1, 1, 1, 1, 1, 1, 1), "bid") for at in times)
    candle_rows.write_candles(rows)


def write_last(instrument: Instrument, until_ms: int = NOON_MS, timeframe: str = "1m") -> None:
    """As many as a start reads into memory, which stay in any case."""
    span_ms = TIMEFRAMES[timeframe]
    write(instrument, *range(until_ms - KEPT * span_ms, until_ms, span_ms), timeframe=timeframe)


def older(timeframe: str = "1m", before: str = "2026-11-17T00:00") -> list[str]:
    """Those left from before the last ones."""
    rows = Candle.objects.filter(timeframe=timeframe, opened_at__lt=f"{before}Z").order_by("opened_at")
    return [f"{at:%Y-%m-%dT%H:%M}" for at in rows.values_list("opened_at", flat=True)]


@pytest.mark.django_db
class TestByTheDay:
    def test_candles_go_when_their_days_are_over(self) -> None:
        instrument = make_instrument()
        write(instrument, "2026-11-10T12:00", "2026-11-15T23:59", "2026-11-16T00:00")
        write_last(instrument)
        assert drop_old(NOON) == {"1m": 2}
        assert older() == ["2026-11-16T00:00"]
        assert drop_old(NOON) == {}

    @pytest.mark.parametrize("others", [0, 5])
    def test_instruments_without_old_candles_are_not_looked_at(
        self, others: int, settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        settings.CANDLE_DAYS = FOR_GOOD | {"5m": 2}
        for number in range(others):
            write(make_instrument(f"OTHER{number}"), "2026-11-17T12:00", timeframe="5m")

        with django_assert_num_queries(len(("simulated", "real"))):
            assert drop_old(NOON) == {}

    def test_no_days_are_for_good(self, settings: Settings) -> None:
        settings.CANDLE_DAYS = FOR_GOOD
        instrument = make_instrument()
        write(instrument, "2001-01-01T00:00")
        write_last(instrument)
        assert drop_old(NOON) == {}

    def test_each_timeframe_has_its_own_days(self, settings: Settings) -> None:
        settings.CANDLE_DAYS = FOR_GOOD | {"1m": 2, "5m": 10}
        instrument = make_instrument()
        for timeframe in ("1m", "5m", "1d"):
            write(instrument, "2026-11-02T00:00", "2026-11-10T00:00", timeframe=timeframe)
            write_last(instrument, ms("2026-11-18T00:00"), timeframe)
        assert drop_old(NOON) == {"1m": 2, "5m": 1}

    def test_day_of_the_last_ones_of_an_instrument_stays_whole_however_old(self) -> None:
        quiet = make_instrument()
        write(quiet, "2020-02-02T23:59", "2020-02-03T00:00")
        write_last(quiet, ms("2020-02-03T12:00"))
        write_last(make_instrument("GBPUSD"))
        assert drop_old(NOON) == {"1m": 1}
        assert older()[0] == "2020-02-03T00:00"

    def test_what_is_left_by_an_interruption_begins_at_midnight(self) -> None:
        instrument = make_instrument()
        write(instrument, *range(ms("2026-11-01T07:00"), ms("2026-11-12T00:00"), HOUR_MS))
        write_last(instrument)

        next(retention.steps(NOON))
        assert older()[0] == "2026-11-04T00:00"


async def tidied_over(
    clock: time_machine.Traveller, ahead: timedelta, caplog: pytest.LogCaptureFixture
) -> None:
    """A round, and another after the machine's clock was set."""
    tidying = asyncio.create_task(retention.keep_tidy())
    await asyncio.sleep(0)
    clock.shift(ahead)
    async with asyncio.timeout(PATIENCE_S):
        while "No old candles" not in caplog.text and await in_thread(lambda: bool(older())):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    await cancel_and_wait(tidying)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("ahead", "left"), [(timedelta(hours=20), []), (timedelta(days=30), ["2026-11-16T00:00"])]
)
async def test_clock_that_is_set_far_ahead_drops_nothing(
    ahead: timedelta, left: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    instrument = await in_thread(make_instrument)
    await in_thread(write, instrument, "2026-11-16T00:00")
    await in_thread(write_last, instrument)
    monkeypatch.setattr(retention, "ROUND_S", 0.01)

    with time_machine.travel(NOON, tick=False) as clock:
        await tidied_over(clock, ahead, caplog)

    assert await in_thread(older) == left
    assert ("set by 30.0 days" in caplog.text) is bool(left)


def make_unfinished(symbol: str, days_ago: int | None) -> None:
    begun = UnfinishedImport.objects.create(
        instrument=make_instrument(symbol), digest="of a file", basis="bid", minute_at=NOON, offset=0, line=0
    )
    got_on_at = None if days_ago is None else NOON - timedelta(days=days_ago)
    UnfinishedImport.objects.filter(pk=begun.pk).update(got_on_at=got_on_at)


def unfinished() -> list[str]:
    return sorted(UnfinishedImport.objects.values_list("instrument__symbol", flat=True))


@pytest.mark.django_db(transaction=True)
async def test_imports_that_nobody_went_on_with_are_forgotten() -> None:
    for symbol, days_ago in (("KEPT", 29), ("OLD", 31), ("UNDATED", None)):
        await in_thread(make_unfinished, symbol, days_ago)

    await retention.tidy(NOON)
    assert await in_thread(unfinished) == ["KEPT", "UNDATED"]
    await retention.tidy(NOON + timedelta(days=31))
    assert await in_thread(unfinished) == []


@pytest.mark.django_db
def test_import_that_gets_on_is_not_old() -> None:
    make_unfinished("EURUSD", 31)
    found = UnfinishedImport.objects.get()
    UnfinishedImport.objects.update_or_create(pk=found.pk, defaults={"offset": 7})
    got_on_at = UnfinishedImport.objects.get().got_on_at
    assert got_on_at is not None
    assert got_on_at > NOON - timedelta(days=31)


@pytest.mark.usefixtures("on_postgresql")
class TestByTheMonth:
    def test_month_that_is_too_old_goes_as_a_table(self) -> None:
        instrument = make_instrument()
        write(instrument, "2026-09-05T00:00", "2026-10-31T23:59", "2026-11-17T00:00")
        write_last(instrument)
        assert list(retention.steps(NOON)) == [("1m", 1), ("1m", 1)]
        assert market_tables().months() == [datetime.fromisoformat("2026-11-01T00:00Z")]

    def test_month_that_is_too_old_in_part_stays_with_the_rest(self) -> None:
        instrument = make_instrument()
        write(instrument, "2026-11-01T00:00", "2026-11-16T00:00")
        write_last(instrument)

        drop_old(NOON)
        assert older() == ["2026-11-16T00:00"]

    def test_month_with_the_last_ones_of_an_instrument_stays_without_the_others(self) -> None:
        quiet, busy = make_instrument(), make_instrument("GBPUSD")
        write(quiet, "2026-08-05T00:00")
        write(busy, "2026-08-05T00:00")
        write_last(busy)
        assert drop_old(NOON) == {"1m": 1}
        assert older() == ["2026-08-05T00:00"]
        assert Candle.objects.filter(instrument=quiet).count() == 1

    def test_imported_past_beyond_the_days_goes_at_the_next_tidying(self) -> None:
        instrument = make_instrument()
        write_last(instrument)
        drop_old(NOON)
        write(instrument, "2019-05-05T00:00")
        assert older() == ["2019-05-05T00:00"]
        assert drop_old(NOON) == {"1m": 1}
        assert market_tables().months() == [datetime.fromisoformat("2026-11-01T00:00Z")]

    def test_candle_that_waits_for_its_month_goes_too(self) -> None:
        """A backup may have hindered making the month, or an older version wrote it."""
        instrument = make_instrument()
        write_last(instrument)
        Candle.objects.create(
            instrument=instrument,
            timeframe="1m",
            opened_at="2019-05-05T00:00Z",
            **dict.fromkeys(("open", "high", "low", "close", "volume"), 1),
        )
        assert drop_old(NOON) == {"1m": 1}
