"""Candles to the database and back."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.models import Candle
from market.prices.candles import PriceBar
from market.store import candle_rows
from tests.factories import make_candle, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = pytest.mark.django_db


@pytest.fixture
def eurusd() -> InstrumentFacts:
    make_instrument("EURUSD")
    return catalogue.get("EURUSD")


def minute(number: int = 0, price: float = 1.5, volume: float = 1.0) -> PriceBar:
    return PriceBar(NOON_MS + number * MINUTE_MS, price, price, price, price, volume, price, price)


def write(facts: InstrumentFacts, *candles: PriceBar, timeframe: str = "1m") -> int:
    return candle_rows.write_candles((facts.id, timeframe, candle, "bid") for candle in candles)


def read(facts: InstrumentFacts, timeframe: str, *count: int) -> list[PriceBar]:
    return [PriceBar(*row) for row in candle_rows.read_candles(facts, timeframe, *count)]


def test_what_is_read_is_what_was_written(eurusd: InstrumentFacts) -> None:
    candle = PriceBar(NOON_MS, 1.0841, 1.08425, 1.08399, 1.0842, 17.25, 1.08431, 1.08405)

    write(eurusd, candle)

    assert read(eurusd, "1m") == [candle]


@pytest.mark.parametrize(
    ("price", "volume", "stored"),
    [
        (1.08412, 0.1 + 0.2, ("1.08412", "0.3")),
        (65432.12345678, 1234567.12345678, ("65432.12345678", "1234567.12345678")),
        (0.00000001, 1e-08, ("0.00000001", "0.00000001")),
        (9_999_999.5, 1e15, ("9999999.5", "1000000000000000")),
        (1.1234567891, 0.0, ("1.12345679", "0")),
    ],
)
def test_floats_arrive_as_decimals_of_eight_places(
    eurusd: InstrumentFacts, price: float, volume: float, stored: tuple[str, str]
) -> None:
    write(eurusd, minute(price=price, volume=volume))

    row = Candle.objects.get()
    assert (row.open, row.volume) == tuple(map(Decimal, stored))
    assert row.ask_low == row.low == row.close == row.open


def test_same_candle_twice_in_a_batch_is_the_last(eurusd: InstrumentFacts) -> None:
    write(eurusd, minute(price=1.5), minute(1), minute(price=1.7))

    assert [candle.close for candle in read(eurusd, "1m")] == [1.7, 1.5]


def test_candle_that_is_there_is_replaced(eurusd: InstrumentFacts) -> None:
    write(eurusd, minute(price=1.5))
    row = Candle.objects.get()

    candle_rows.write_candles([(eurusd.id, "1m", minute(price=1.7, volume=2.0), "mid")])

    written = Candle.objects.get()
    assert (written.pk, written.close, written.basis) == (row.pk, Decimal("1.7"), "mid")
    assert written.volume == 2


def test_more_than_a_batch_is_written_whole(eurusd: InstrumentFacts) -> None:
    count = candle_rows.BATCH + 1

    assert write(eurusd, *(minute(number) for number in range(count))) == count
    assert Candle.objects.count() == count


def test_nothing_to_write_is_no_fault() -> None:
    assert candle_rows.write_candles([]) == 0


def test_last_candles_come_oldest_first(eurusd: InstrumentFacts) -> None:
    write(eurusd, *(minute(number) for number in (3, 0, 2, 1)))

    assert read(eurusd, "1m", 2) == [minute(2), minute(3)]


def test_candles_of_others_are_not_read(eurusd: InstrumentFacts) -> None:
    make_candle(make_instrument("GBPUSD"))
    write(eurusd, minute(), timeframe="5m")

    assert read(eurusd, "1m") == []


def test_candle_without_the_asks_extremes_has_its_own(eurusd: InstrumentFacts) -> None:
    make_candle(make_instrument("GBPUSD"), ask_high=None, ask_low=None)

    (candle,) = read(catalogue.get("GBPUSD"), "1m")

    assert (candle.ask_high, candle.ask_low) == (1.0804, 1.0800)


def test_minutes_are_read_from_a_moment_on(eurusd: InstrumentFacts) -> None:
    write(eurusd, *map(minute, range(4)))
    write(eurusd, minute(9), timeframe="5m")

    assert candle_rows.read_minutes_since(eurusd, NOON_MS + 2 * MINUTE_MS) == [minute(2), minute(3)]
