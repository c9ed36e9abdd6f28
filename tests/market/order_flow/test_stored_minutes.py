"""The order flow of minutes in the database: over faults, kills and changes of kind, until it is dropped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from core.times import MINUTE_MS, moment
from instruments.models import Instrument
from market.engine.engine import Engine
from market.models import Candle, LastQuote, OrderFlowMinute
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.history import KEPT
from market.prices.order_flow import MinuteFlow
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.store import candle_rows, retention
from market.store.checkpoints import FlowToWrite, read_flows, write_flows
from tests.factories import NOON, make_instrument
from tests.market.running import flush, restarted
from tests.market.store.test_engine_store import broken_database
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock"), pytest.mark.services]
# Seconds after noon, volumes, and the side of the taker.
TRADES = [
    *((1, 2.5, 1), (20, 0.5, -1), (50, 1.25, 1)),
    *((61, 4.0, -1), (100, 0.125, 1), (130, 8.0, 1), (200, 1.0, -1)),
]


@pytest.fixture(autouse=True)
def instrument(transactional_db: None) -> Instrument:
    return make_instrument("EURUSD", order_flow_source="trades", volume_kind="traded")


def feed(engine: Engine, trades: list[tuple[int, float, int]]) -> Engine:
    for after_s, volume, side in trades:
        at_ms = NOON_MS + after_s * 1000
        assert engine.accept(Tick("EURUSD", 1.0, 1.01, at_ms, volume, side), at_ms) is None
    return engine


def make_engine(trades: list[tuple[int, float, int]]) -> Engine:
    return feed(Engine(Prices("bid")), trades)


def minute(number: int, bid: float = 1.0, ask: float = 2.0) -> MinuteFlow:
    return MinuteFlow(NOON_MS + number * MINUTE_MS, bid, ask, ask - bid, 1)


def write(instrument: Instrument, *minutes: MinuteFlow, simulated: bool = False) -> None:
    write_flows([FlowToWrite(instrument.pk, simulated, each) for each in minutes])


def quoted(instrument: Instrument, *, simulated: bool = False) -> None:
    LastQuote.objects.update_or_create(instrument=instrument, defaults={"simulated": simulated})


def stored() -> list[tuple[object, ...]]:
    rows = OrderFlowMinute.objects.order_by("instrument", "simulated", "opened_at")
    return list(rows.values_list("opened_at", "bid_volume", "ask_volume", "cumulative_delta", "absorptions"))


def test_what_is_written_is_read_again_once_there_is_a_quote(instrument: Instrument) -> None:
    exact = MinuteFlow(NOON_MS, 0.1, 123_456_789.12345678, -0.00000001, 24)
    write(instrument, exact, minute(1), minute(0), exact)
    assert read_flows(instrument.pk, 10) == []
    quoted(instrument)
    assert read_flows(instrument.pk, 10) == [exact, minute(1)]


def test_the_newest_are_read_without_a_start_and_the_first_with_one(instrument: Instrument) -> None:
    write(instrument, *map(minute, range(6)))
    quoted(instrument)
    begin_ms, stop_ms = NOON_MS + 1, NOON_MS + 4 * MINUTE_MS

    def read(limit: int, start_ms: int | None = None, end_ms: int | None = None) -> list[int]:
        found = read_flows(instrument.pk, limit, start_ms=start_ms, end_ms=end_ms)
        return [(each.opened_ms - NOON_MS) // MINUTE_MS for each in found]

    assert read(2) == [4, 5]
    assert read(2, end_ms=stop_ms) == [2, 3]
    assert read(2, start_ms=begin_ms) == [1, 2]
    assert read(9, start_ms=begin_ms, end_ms=stop_ms) == [1, 2, 3]
    assert read(9, start_ms=stop_ms, end_ms=begin_ms) == []


def test_only_the_present_kind_is_read(instrument: Instrument) -> None:
    write(instrument, minute(0), simulated=True)
    write(instrument, minute(1))
    write(make_instrument("GBPUSD"), minute(2))
    for simulated, number in ((True, 0), (False, 1)):
        quoted(instrument, simulated=simulated)
        assert read_flows(instrument.pk, 10) == [minute(number)]


@pytest.mark.parametrize(
    ("withheld", "numbers"),
    [((), [0, 1, 2, 3]), (("kraken",), [2]), (("kraken", "push"), []), (("x",), [0, 1, 2])],
)
def test_what_may_not_be_handed_on_is_left_out_as_its_candle_is(
    instrument: Instrument, withheld: tuple[str, ...], numbers: list[int]
) -> None:
    """One whose candle is gone may be of any source."""
    write(instrument, *map(minute, range(4)))
    quoted(instrument)
    for number, source in enumerate(("kraken", "kraken+push:desk", "push:desk")):
        bar = PriceBar(NOON_MS + number * MINUTE_MS, 1.5, 1.5, 1.5, 1.5, 1.0, 1.5, 1.5, source)
        candle_rows.write_candles([(instrument.pk, "1m", bar, "bid")])

    assert read_flows(instrument.pk, 10, withheld=withheld) == [minute(number) for number in numbers]


@pytest.mark.parametrize("table", ["market_candle", "market_orderflowminute", "market_lastquote"])
def test_what_could_not_be_written_is_written_later(table: str) -> None:
    engine = make_engine(TRADES)
    with broken_database(table):
        assert not flush(engine)
    assert stored() == []
    flush(engine)
    assert len(stored()) == Candle.objects.filter(timeframe="1m").count() == 3


@pytest.mark.parametrize("written", range(len(TRADES)))
@pytest.mark.parametrize("lost", [0, 1, 3])
def test_kill_at_any_tick_changes_no_minute(written: int, lost: int) -> None:
    """The database holds the first ticks, the journal the next, and the others come after the restart."""
    flush(make_engine(TRADES))
    whole = stored()
    for model in (OrderFlowMinute, Candle, LastQuote):
        model.objects.all().delete()
    killed = min(written + lost, len(TRADES))
    engine = make_engine(TRADES[:written])
    flush(engine)
    engine.records.clear()
    feed(engine, TRADES[written:killed])

    successor = restarted()
    for record in engine.records:
        successor.repeat(record, NOON_MS)
    flush(feed(successor, TRADES[killed:]))

    assert stored() == whole


def test_minute_that_goes_on_from_the_version_before_is_left_out_alone() -> None:
    flush(make_engine(TRADES[:2]))
    row = LastQuote.objects.get()
    kept: dict[str, int] = row.flow_state or {}
    row.flow_state = {name: kept[name] for name in ("day", "units", "side", "half_points")}
    row.save()

    flush(feed(restarted(), TRADES[2:]))

    assert [(each[0], each[3]) for each in stored()] == [
        (NOON + timedelta(minutes=number), total) for number, total in ((1, -0.625), (2, 7.375))
    ]


def test_they_go_with_the_candles_of_their_minutes(instrument: Instrument, settings: Settings) -> None:
    settings.CANDLE_DAYS = dict.fromkeys(TIMEFRAMES, 0) | {"1m": 2}
    old_ms = NOON_MS - 5 * TIMEFRAMES["1d"]
    opened = [*range(old_ms, old_ms + 3 * MINUTE_MS, MINUTE_MS)]
    opened += range(NOON_MS - KEPT * MINUTE_MS, NOON_MS, MINUTE_MS)
    rows = [(instrument.pk, "1m", PriceBar(at, 1, 1, 1, 1, 1, 1, 1), "bid") for at in opened]
    candle_rows.write_candles(rows)
    write(instrument, *[MinuteFlow(at, 0.0, 1.0, 1.0, 0) for at in opened])
    other = make_instrument("GBPUSD")
    write(other, MinuteFlow(old_ms, 0.0, 1.0, 1.0, 0))

    removed = dict(retention.steps(NOON))

    assert removed == {"1m": 3, "order flow": 3}
    kept = OrderFlowMinute.objects.filter(instrument=instrument).order_by("opened_at").first()
    assert kept is not None
    assert kept.opened_at == moment(NOON_MS - KEPT * MINUTE_MS)
    # So few are kept whatever their age, as its candles would be.
    assert OrderFlowMinute.objects.filter(instrument=other).count() == 1
