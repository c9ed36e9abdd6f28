"""The instrument that only the demo has."""

from __future__ import annotations

import csv

import pytest

from demo.instruments import seed_instruments
from demo.people import seed_people
from demo.seeding import remove
from demo.signals import seed_signals
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL
from instruments.models import Instrument, TradingCalendar
from instruments.saving import SHIPPED
from signals_feed.models import Signal
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS, ms

pytestmark = pytest.mark.django_db


def seeded() -> None:
    seed_instruments(lambda text: None)
    catalogue.load_now()


def test_only_the_demo_has_an_instrument_for_tests() -> None:
    with (SHIPPED / "instruments.csv").open() as rows:
        assert TEST_SYMBOL not in [row["symbol"] for row in csv.DictReader(rows)]
    make_instrument("EURUSD")
    seeded()
    assert set(Instrument.objects.values_list("symbol", flat=True)) == {"EURUSD", TEST_SYMBOL}
    test = catalogue.get(TEST_SYMBOL)
    assert test.name == "Test instrument"
    assert (test.volume_kind, test.order_flow_source) == ("traded", "trades")
    assert test.hours.is_open(ms("2026-12-25T12:00"))


def test_seeding_again_changes_nothing_and_it_goes_with_the_demo() -> None:
    seeded()
    Instrument.objects.filter(symbol=TEST_SYMBOL).update(active=False)
    count = Instrument.objects.count()
    seeded()
    assert Instrument.objects.count() == count
    assert not Instrument.objects.get(symbol=TEST_SYMBOL).active
    seed_people()
    remove(lambda text: None)
    assert not Instrument.objects.exists()
    assert not TradingCalendar.objects.exists()


def test_one_that_somebody_made_stays() -> None:
    own = make_instrument(TEST_SYMBOL)
    seeded()
    seed_people()
    remove(lambda text: None)
    assert list(Instrument.objects.all()) == [own]


def test_nobody_publishes_signals_on_it() -> None:
    seeded()
    Instrument.objects.exclude(symbol=TEST_SYMBOL).delete()
    catalogue.load_now()
    seed_people()
    seed_signals(NOON_MS, lambda text: None)
    assert not Signal.objects.exists()
