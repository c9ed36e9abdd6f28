"""Candles, and what is written every second of each instrument that moved, to the database and back."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.times import MINUTE_MS, moment
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.models import Candle, FormingMinute, LastQuote
from market.prices.candles import PriceBar
from market.prices.records import JournalPosition, Tick
from market.store import candle_rows, checkpoints
from market.store.checkpoints import Checkpoint
from market.store.lease import Lease
from tests.factories import NOON, make_candle, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db, pytest.mark.services]
FLOW_STATE = {"day": 20_775, "units": -1.5e-7, "name": 'a "b", {c}\\', "none": None, "list": [1, 2.5]}


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


def test_candle_that_is_there_is_replaced_by_the_last_of_a_batch(eurusd: InstrumentFacts) -> None:
    write(eurusd, minute(price=1.5))
    row = Candle.objects.get()
    prices = (minute(price=1.6), minute(1), minute(price=1.7, volume=2.0))
    candle_rows.write_candles((eurusd.id, "1m", each, "mid") for each in prices)
    written = Candle.objects.get(opened_at=NOON)
    assert (written.pk, written.close, written.basis) == (row.pk, Decimal("1.7"), "mid")
    assert written.volume == 2
    assert Candle.objects.count() == 2


def test_more_than_a_batch_is_written_whole_and_nothing_is_no_fault(eurusd: InstrumentFacts) -> None:
    count = candle_rows.BATCH + 1
    assert candle_rows.write_candles([]) == 0
    assert write(eurusd, *(minute(number) for number in range(count))) == count
    assert Candle.objects.count() == count


def test_last_candles_of_a_series_come_oldest_first_or_from_a_moment_on(eurusd: InstrumentFacts) -> None:
    write(eurusd, *(minute(number) for number in (3, 0, 2, 1)))
    write(eurusd, minute(9), timeframe="5m")
    make_candle(make_instrument("GBPUSD"))
    assert read(eurusd, "1m", 2) == [minute(2), minute(3)]
    assert candle_rows.read_minutes_since(eurusd, NOON_MS + 2 * MINUTE_MS) == [minute(2), minute(3)]


def test_candle_without_the_asks_extremes_has_its_own() -> None:
    make_candle(make_instrument("GBPUSD"), ask_high=None, ask_low=None)
    (candle,) = read(catalogue.get("GBPUSD"), "1m")
    assert (candle.ask_high, candle.ask_low) == (1.0804, 1.0800)


@pytest.fixture
def lease() -> Lease:
    taken = Lease()
    taken.take()
    return taken


def check_in(lease: Lease, written: dict[int, Checkpoint]) -> None:
    checkpoints.write([], written, lease, JournalPosition("e", 1))


def make_checkpoint(
    symbol: str, price: float = 1.0841, at_ms: int = NOON_MS + 250, seq: int = 7
) -> Checkpoint:
    tick = Tick(symbol, price, price + 0.00014, at_ms, 3.0)
    minute = PriceBar(NOON_MS, price, price + 1e-8, price - 1e-8, price, 1 / 3, price, price, "kraken+demo")
    seqs = {"kraken trades": 2**53, 'a"b': 1}
    flow = 5, FLOW_STATE, seqs
    return Checkpoint(tick, minute, seq, *flow, simulated=True, source="demo", unsettled_ms=12_345)


def test_checkpoint_that_is_written_is_read_again(lease: Lease) -> None:
    instrument = make_instrument()
    written = make_checkpoint(instrument.symbol)

    check_in(lease, {instrument.pk: written})

    found = checkpoints.read_checkpoints()[instrument.pk]
    assert written.minute is not None
    assert found.minute == PriceBar(
        NOON_MS, 1.0841, 1.08410001, 1.08409999, 1.0841, 0.33333333, 1.0841, 1.0841, "kraken+demo"
    )
    assert found._replace(minute=None, last=None) == written._replace(minute=None, last=None)
    row = LastQuote.objects.get()
    assert (row.bid, row.ask, row.quoted_at) == (Decimal("1.0841"), Decimal("1.08424"), moment(NOON_MS + 250))
    assert (row.flow_state, row.source_seqs) == (FLOW_STATE, written.source_seqs)


def test_second_checkpoint_takes_the_place_of_the_first_but_for_its_kind(lease: Lease) -> None:
    instrument, other = make_instrument("EURUSD"), make_instrument("GBPUSD")
    check_in(lease, {each.pk: make_checkpoint(each.symbol) for each in (other, instrument)})
    LastQuote.objects.update(kind_since=NOON)

    check_in(lease, {instrument.pk: make_checkpoint("EURUSD", 1.2, NOON_MS + MINUTE_MS, seq=8)})

    assert dict(LastQuote.objects.values_list("instrument__symbol", "seq")) == {"EURUSD": 8, "GBPUSD": 7}
    assert LastQuote.objects.get(pk=instrument.pk).kind_since == NOON
    assert FormingMinute.objects.get(pk=instrument.pk).open == Decimal("1.2")
    assert FormingMinute.objects.get(pk=other.pk).open == Decimal("1.0841")


def test_nothing_quoted_and_no_flow_is_null(lease: Lease) -> None:
    instrument = make_instrument()

    check_in(lease, {instrument.pk: Checkpoint(None, None, 3, 2)})

    row = LastQuote.objects.get()
    assert (row.bid, row.ask, row.quoted_at, row.flow_state, row.source_seqs) == (None, None, None, None, {})
    assert LastQuote.objects.filter(flow_state__isnull=True).exists()
    assert not FormingMinute.objects.exists()
