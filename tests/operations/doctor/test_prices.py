from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from market.models import EngineState, LastQuote
from market.push.keys import issue_ingest_key
from market.store.process_names import own_name
from operations.doctor.prices import check_prices
from tests.factories import make_calendar, make_instrument

from .diagnoses import faults, only_fault

pytestmark = pytest.mark.django_db


@pytest.fixture
def _engine() -> None:
    EngineState.objects.create(pk=1, writer=own_name(), beat_at=timezone.now())


def quote(symbol: str, seconds_ago: float = 0, **fields: object) -> None:
    quoted_at = timezone.now() - timedelta(seconds=seconds_ago)
    instrument = make_instrument(symbol, **fields)
    LastQuote.objects.create(instrument=instrument, bid=1, ask=2, quoted_at=quoted_at)


@pytest.mark.usefixtures("_engine")
def test_fresh_prices_of_an_engine_are_in_order() -> None:
    quote("EURUSD", source="kraken")
    another_day = (timezone.now() + timedelta(days=3)).strftime("%a")
    closed = make_calendar("closed", f"{another_day} 10:00-11:00")
    make_instrument("XAUUSD", source="kraken", calendar=closed)
    assert faults(check_prices()) == []


def test_a_service_without_instruments_is_told() -> None:
    assert only_fault(check_prices()) == ("warn", "There are no instruments, so there is nothing to price.")


def test_no_engine_is_told(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    quote("EURUSD", source="kraken")
    (found,) = check_prices()
    assert (found.level, found.says) == ("warn", "No engine is running, so no prices are made.")
    assert "run_engine" in found.fix


@pytest.mark.parametrize("seconds_ago", [16, 86_400])
def test_an_engine_that_has_stopped_writing_is_none(seconds_ago: float) -> None:
    quote("EURUSD", source="kraken")
    beat_at = timezone.now() - timedelta(seconds=seconds_ago)
    EngineState.objects.create(pk=1, writer="elsewhere:1:x.y", beat_at=beat_at)
    assert "No engine" in only_fault(check_prices())[1]


@pytest.mark.usefixtures("_engine")
def test_open_markets_without_fresh_prices_are_named() -> None:
    make_instrument("BTCUSD", source="kraken")
    quote("EURUSD", source="kraken")
    quote("XAUUSD", 120, source="kraken")
    quote("XAGUSD", 120, source="kraken", stale_after_s=600)
    assert only_fault(check_prices()) == (
        "warn",
        "No fresh prices of BTCUSD, XAUUSD, though the market is open.",
    )


@pytest.mark.usefixtures("_engine")
def test_instruments_that_nobody_may_push_are_told(settings: Settings) -> None:
    settings.DEMO = False
    quote("EURUSD")
    quote("XAUUSD", source="push:desk")
    quote("BTCUSD", source="kraken")
    says = "Of 3 instruments, 2 wait for pushed prices, and there is no ingest key."
    assert only_fault(check_prices()) == ("warn", says)

    issue_ingest_key("desk", by="test")
    assert faults(check_prices()) == []
