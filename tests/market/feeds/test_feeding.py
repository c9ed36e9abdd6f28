"""Feeds as the engine has them: made by name, received while they price an instrument, started again."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from pytest_django import Settings

from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import Engine
from market.engine.feeds.feed import FeedReceiver
from market.engine.feeds.supervisor import EngineReceiver, make_feed, venue_symbols
from market.engine.venues import binance, kraken, oanda
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick, TickAccepted
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS, make_facts
from tests.patience import PATIENCE_S

from .receivers import RecordingReceiver, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
TICKS = 50
MINUTE = PriceBar(NOON_MS - 2 * MINUTE_MS, 1.08, 1.08, 1.08, 1.08, 3.0, 1.09, 1.09)


@pytest.mark.parametrize(
    ("feed", "usual", "theirs"),
    [("kraken", kraken, "EUR/USD"), ("binance", binance, "EURUSDT"), ("oanda", oanda, "EUR_USD")],
)
def test_venues_usual_name_is_known_unless_the_instrument_names_another(
    feed: str, usual: ModuleType, theirs: str
) -> None:
    instruments = [
        make_facts("EURUSD", source=feed),
        make_facts("XAUUSD", source=f"{feed}:GOLD/1", fallback="demo:NONE"),
        make_facts("DE30", source="demo", fallback=f"{feed}:DAX"),
    ]
    names = venue_symbols(feed, instruments, usual.venue_symbol)
    assert names == {"EURUSD": theirs, "XAUUSD": "GOLD/1", "DE30": "DAX"}


def test_slash_at_the_end_of_an_address_does_no_harm(settings: Settings) -> None:
    settings.BINANCE_WS_URL, settings.BINANCE_REST_URL = "wss://venue.example/", "https://venue.example/"
    feed = make_feed("binance", [make_facts()])
    assert isinstance(feed, binance.BinanceFeed)
    assert (feed.url, feed.rest_url) == ("wss://venue.example/stream", "https://venue.example")
    with pytest.raises(LookupError, match="no feed 'nasdaq'"):
        make_feed("nasdaq", [])


class CountingReceiver(EngineReceiver):
    """The engine's own receiver, and what it let in."""

    def __init__(self, engine: Engine, name: str) -> None:
        super().__init__(engine, name, ["EURUSD"], self._publish)
        self.feed_state = engine.feed_state(name)
        self.taken: list[TickAccepted] = []
        self.has_enough = asyncio.Event()
        self._records = engine.records

    def _publish(self) -> None:
        self.taken += [record for record in self._records if isinstance(record, TickAccepted)]
        self._records.clear()
        if len(self.taken) >= TICKS:
            self.has_enough.set()


@pytest.fixture(params=["demo", "replay"])
def name(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> str:
    """A feed that prices an instrument; among the lines that are replayed are a crossed and an old one."""
    lines = [f"{NOON_MS + n * 1000},1.08{n:03},1.08{n + 2:03}" for n in range(TICKS)]
    lines[20:20] = [f"{NOON_MS + 19_500},1.09,1.08", f"{NOON_MS + 5_000},1.07,1.071"]
    tmp_path.joinpath("EURUSD.csv").write_text("\n".join(["timestamp,bid,ask", *lines, ""]))
    settings.REPLAY_DIR, settings.REPLAY_SPEED = tmp_path, 1000.0
    settings.DEMO_RATE = 200.0
    make_instrument("EURUSD", source=request.param)
    return str(request.param)


async def test_time_is_monotonic_and_no_quote_crossed_in_what_the_engine_lets_in(name: str) -> None:
    receiver = CountingReceiver(Engine(Prices("bid")), name)

    feeding = asyncio.create_task(make_feed(name, catalogue.active()).run(receiver))
    async with asyncio.timeout(PATIENCE_S):
        await receiver.has_enough.wait()
    feeding.cancel()
    await asyncio.wait([feeding])

    times = [taken.time_ms for taken in receiver.taken]
    assert times == sorted(times)
    assert all(0 < taken.bid <= taken.ask for taken in receiver.taken)
    refused = Counter(receiver.feed_state.refused)
    # Where a minute ends meanwhile, the old one comes too late.
    refused["older_than_last"] += refused.pop("too_late", 0)
    assert refused == Counter({"crossed": 1, "older_than_last": 1} if name == "replay" else {})


async def test_cancelled_feed_leaves_nothing_running(name: str, settings: Settings) -> None:
    settings.REPLAY_SPEED = 1.0
    receiver, before = RecordingReceiver(), asyncio.all_tasks()

    async with running(make_feed(name, catalogue.active()), receiver) as task:
        await receiver.until_ticks(1)

    assert task.cancelled()
    assert asyncio.all_tasks() == before
    assert receiver.losses == []


class ShortFeed:
    """Gives one tick each time it runs, then fails."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_back = asyncio.Event()

    async def run(self, receiver: FeedReceiver) -> None:
        self.runs += 1
        receiver.refuse("gap", f"run {self.runs}")
        receiver.take([Tick("EURUSD", 1.08, 1.0802, NOON_MS - 100 + self.runs)])
        if self.runs > 1:
            self.is_back.set()
            await asyncio.Event().wait()
        raise ConnectionResetError("gone")


@pytest.mark.usefixtures("clock")
async def test_feed_that_broke_starts_again() -> None:
    await in_thread(make_instrument, "EURUSD", source="kraken")
    engine, feed = Engine(Prices("bid")), ShortFeed()
    runner = make_runner(engine, lambda name, instruments: feed)
    await runner.start()
    await asyncio.wait_for(feed.is_back.wait(), PATIENCE_S)
    quote, state = engine.prices.quotes.get("EURUSD"), engine.feed_state("kraken")
    await runner.stop()
    assert quote is not None
    assert quote.time_ms == NOON_MS - 98
    # What it complained of is of the connection that stands.
    assert (state.refused, list(state.complaints)) == ({"gap": 2}, ["run 2"])


def make_engine(source: str, fallback: str = "") -> Engine:
    make_instrument("EURUSD", source=source, fallback=fallback)
    engine = Engine(Prices("bid"))
    engine.keep_time(NOON_MS - 10 * MINUTE_MS)
    return engine


def change(**fields: object) -> None:
    Instrument.objects.update(**fields)
    catalogue.load_now()


def filled(engine: Engine) -> list[str]:
    """The bases of the minutes that are written, after Kraken has brought one."""
    EngineReceiver(engine, "kraken", ["EURUSD"], lambda: None).backfill("EURUSD", [MINUTE], "trades")
    return [basis for _, timeframe, _, basis in engine.rows if timeframe == "1m"]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("changes", [{}, {"source": "binance"}, {"active": False}], ids=str)
def test_source_fills_minutes_until_it_is_replaced_or_its_instrument_taken_out(
    changes: dict[str, object],
) -> None:
    engine = make_engine("kraken")
    change(**changes)
    assert filled(engine) == ([] if changes else ["trades"])


@pytest.mark.usefixtures("clock")
def test_fallback_fills_nothing_while_it_stands_by() -> None:
    assert filled(make_engine("binance", fallback="kraken")) == []


@pytest.mark.usefixtures("clock")
def test_real_minutes_do_not_come_into_a_simulated_series_that_is_still_to_end() -> None:
    engine = make_engine("demo")
    assert engine.take("demo", [Tick("EURUSD", 1.5, 1.6, NOON_MS - 9 * MINUTE_MS)], NOON_MS) == [None]
    change(source="kraken")
    engine.keep_time(NOON_MS)
    before = engine.rows.copy()
    filled(engine)
    assert engine.rows == before
