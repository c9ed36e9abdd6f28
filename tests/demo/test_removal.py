"""Everything that the demo brought goes; everything that people have made since stays."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import Model

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from demo.people import PUBLISHERS, seed_people
from demo.seeding import remove
from instruments.models import Instrument, TradingCalendar
from market.models import AbsorptionWindows, Candle, FormerQuote, FormingMinute, LastQuote, OrderFlowMinute
from news.models import NewsItem
from signals_feed.models import Signal
from tests.factories import (
    NOON,
    make_account,
    make_calendar,
    make_candle,
    make_instrument,
    make_news,
    make_signal,
    make_user,
)
from tests.signals_feed.published_signals import make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]


@pytest.fixture(autouse=True)
def shipped() -> Instrument:
    """EURUSD as the demo leaves it."""
    seed_people()
    instrument = make_instrument("EURUSD", calendar=make_calendar("forex", "Sun 17:00-Fri 17:00"))
    make_candle(instrument, simulated=True, source="demo")
    prices = {"open": 1, "high": 1, "low": 1, "close": 1, "volume": 1}
    FormingMinute.objects.create(instrument=instrument, opened_at=NOON, source="demo", **prices)
    quote = {"bid": 1, "ask": 1, "quoted_at": NOON}
    LastQuote.objects.create(instrument=instrument, simulated=True, source="demo", **quote)
    AbsorptionWindows.objects.create(instrument=instrument, volumes=[[1, 2]])
    make_published(instrument, user=User.objects.get(username=PUBLISHERS[0]))
    make_news("Demo news", is_demo=True)
    return instrument


@pytest.mark.parametrize("timeframe", ["1m", "1h", "1d"])
def test_real_candle_and_quote_of_the_same_time_stay(shipped: Instrument, timeframe: str) -> None:
    make_candle(shipped, timeframe if timeframe != "1m" else "5m", simulated=True, source="demo")
    real = make_candle(shipped, timeframe, source="push")
    LastQuote.objects.filter(pk=shipped.pk).update(simulated=False, source="push")
    removed()
    assert list(Candle.objects.all()) == [real]
    assert LastQuote.objects.get().source == "push"


def test_hour_of_the_demo_and_a_replay_becomes_that_of_the_replay(shipped: Instrument) -> None:
    for minute, source, close in ((0, "demo", "1.5"), (1, "replay", "1.1"), (2, "replay", "1.2")):
        values = {"open": close, "high": close, "low": close, "close": close, "volume": 2}
        at = NOON + timedelta(minutes=minute)
        Candle.objects.filter(timeframe="1m", opened_at=at).delete()
        make_candle(shipped, "1m", at, simulated=True, source=source, **values)
    whole = {"open": "1.5", "high": "1.5", "low": "1.1", "close": "1.2", "volume": 6}
    make_candle(shipped, "1h", NOON, simulated=True, source="demo+replay", **whole)
    make_candle(shipped, "5m", NOON - timedelta(days=3), simulated=True, source="demo+replay", **whole)
    removed()
    hour = Candle.objects.exclude(timeframe="1m").get()
    assert (hour.timeframe, hour.source, hour.simulated) == ("1h", "replay", True)
    prices = hour.open, hour.high, hour.low, hour.close, hour.volume
    assert [float(price) for price in prices] == [1.1, 1.2, 1.1, 1.2, 4.0]
    assert Candle.objects.filter(timeframe="1m").count() == 2


def test_order_flow_goes_with_its_minutes(shipped: Instrument) -> None:
    def make_flow(minute: int, *, simulated: bool) -> OrderFlowMinute:
        at = NOON + timedelta(minutes=minute)
        sums = dict.fromkeys(("bid_volume", "ask_volume", "cumulative_delta", "absorptions"), 1)
        return OrderFlowMinute.objects.create(instrument=shipped, simulated=simulated, opened_at=at, **sums)

    make_flow(0, simulated=True)
    make_candle(shipped, "1m", NOON + timedelta(minutes=1), simulated=True, source="replay")
    kept = [make_flow(1, simulated=True), make_flow(0, simulated=False)]
    removed()
    assert set(OrderFlowMinute.objects.all()) == set(kept)


@pytest.mark.parametrize(("former", "prices"), [("push", (2, 3)), ("demo", (1, 1))])
def test_real_quote_from_before_or_beside_the_demo_is_the_last_one(
    shipped: Instrument, former: str, prices: tuple[int, int]
) -> None:
    is_demo = former == "demo"
    if is_demo:
        LastQuote.objects.filter(pk=shipped.pk).update(simulated=False, source="push")
    quote = {"bid": 2, "ask": 3, "quoted_at": NOON, "source": former}
    FormerQuote.objects.create(instrument=shipped, simulated=is_demo, **quote)
    removed()
    row = LastQuote.objects.get()
    assert (row.simulated, row.source, row.bid, row.ask) == (False, "push", *map(Decimal, prices))
    assert not FormerQuote.objects.exists()


def removed() -> None:
    remove(lambda text: None)


def test_nothing_of_the_demo_is_left_and_running_processes_hear_of_it() -> None:
    removed()
    brought = (Account, User, Instrument, TradingCalendar, Candle, FormingMinute, LastQuote, Signal, NewsItem)
    assert [model for model in brought if model._default_manager.exists()] == []
    kinds = list(ControlEvent.objects.order_by("position").values_list("kind", flat=True))
    assert kinds[-1] == EventKind.INSTRUMENTS_CHANGED
    assert EventKind.ACCOUNT_CHANGED in kinds


def test_person_and_signal_stay_with_the_instrument_which_keeps_no_simulated_quote(
    shipped: Instrument,
) -> None:
    LastQuote.objects.filter(pk=shipped.pk).update(bid="1.0850", ask="1.0852")
    account = make_account(make_user("alice"))
    signal = make_signal(shipped, account.user)
    removed()
    assert (list(Account.objects.all()), list(Signal.objects.all())) == ([account], [signal])
    assert list(Instrument.objects.all()) == [shipped]
    assert not LastQuote.objects.exists()
    assert not FormingMinute.objects.exists()
    assert not AbsorptionWindows.objects.exists()
    # It ends at the last simulated quote.
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0850"))


@pytest.mark.parametrize("keeps", ["news", "a candle", "a source"])
def test_what_people_made_stays_with_its_instrument(shipped: Instrument, keeps: str) -> None:
    if keeps == "news":
        made: Model = make_news("Real news")
        made.symbols.add(shipped)  # type: ignore[attr-defined]
    elif keeps == "a candle":
        made = make_candle(shipped, "1h", basis="bid")
    else:
        Instrument.objects.filter(pk=shipped.pk).update(source="kraken")
        made = shipped
    removed()
    assert list(type(made)._default_manager.all()) == [made]
    assert list(Instrument.objects.all()) == [shipped]
    assert not LastQuote.objects.exists()
    assert NewsItem.objects.filter(symbols=shipped).exists() is (keeps == "news")


def test_instrument_and_calendar_that_staff_made_stay() -> None:
    own = make_instrument("HOUSE1", calendar=make_calendar("house"))
    make_candle(own, simulated=True, source="demo")
    unused = make_calendar("unused")
    removed()
    assert list(Instrument.objects.all()) == [own]
    assert set(TradingCalendar.objects.all()) == {own.calendar, unused}


def test_without_a_demo_nothing_is_touched() -> None:
    removed()
    instrument = make_instrument("EURUSD")
    make_candle(instrument, close=Decimal("1.0802"))
    removed()
    assert list(Instrument.objects.all()) == [instrument]
