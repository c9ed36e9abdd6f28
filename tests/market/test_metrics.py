"""What Prometheus reads of the market."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings
from time_machine import Traveller

from core.clock import now_ms
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.metrics import MarketMetrics
from market.runtime import prices
from tests.factories import make_calendar, make_instrument, put_candles, put_quote

from .engine_status import make_feed_status, make_instrument_status, tell, untold  # noqa: F401 - a fixture
from .ticking import NOON_MS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "untold")]
CLIENT = Client(headers={"Authorization": f"Bearer {settings.METRICS_TOKEN}"})
Scrape = dict[tuple[str, ...], float]


@pytest.fixture
def per_symbol(settings: Settings) -> None:
    settings.METRICS_PER_SYMBOL = True


def scrape() -> Scrape:
    """Values by name and label values."""
    registry = CollectorRegistry()
    registry.register(MarketMetrics())
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def test_source_has_its_ticks_refusals_and_lag_and_is_up_while_it_is_heard(clock: Traveller) -> None:
    odd = 'push:"a"\\\n'
    tell(
        (
            make_feed_status(ticks=1200, refused={"crossed": 3, "standby": 7}, lag_ms=40, heard_ms=now_ms()),
            make_feed_status("oanda", state="silent"),
            make_feed_status("binance", state="lost"),
            make_feed_status(odd, refused={'"}': 1}),
        )
    )
    clock.shift(2.5)

    seen = scrape()

    assert seen["tickwire_ticks_total", "kraken"] == seen["tickwire_ticks_total", odd] == 1200
    assert seen["tickwire_ticks_refused_total", "kraken", "crossed"] == 3
    assert seen["tickwire_ticks_refused_total", "kraken", "standby"] == 7
    assert seen["tickwire_ticks_refused_total", odd, '"}'] == 1
    assert seen["tickwire_feed_lag_seconds", "kraken"] == 0.04
    assert seen["tickwire_feed_age_seconds", "kraken"] == 2.5
    assert [seen["tickwire_feed_up", name] for name in ("kraken", "oanda", "binance")] == [1, 0, 0]


def test_source_that_was_never_heard_is_down_without_an_age_and_push_is_up_once_a_sender_is() -> None:
    make_instrument()
    tell(instruments=(make_instrument_status(feeds=("kraken", "push")),))

    seen = scrape()

    assert (seen["tickwire_feed_up", "kraken"], seen["tickwire_feed_up", "push"]) == (0, 0)
    assert ("tickwire_feed_age_seconds", "kraken") not in seen
    assert ("tickwire_feed_lag_seconds", "kraken") not in seen

    tell((make_feed_status("push:desk"),), (make_instrument_status(feed="push", feeds=("push",)),))

    seen = scrape()

    assert seen["tickwire_feed_up", "push:desk"] == 1
    assert ("tickwire_feed_up", "push") not in seen


@pytest.mark.parametrize(("silent_s", "up"), [(5, 1), (5.001, 0)])
def test_engine_that_says_nothing_for_long_is_down_and_all_its_sources_too(
    clock: Traveller, silent_s: float, up: int
) -> None:
    tell((make_feed_status(),), waiting_rows=4)
    clock.shift(silent_s)

    seen = scrape()

    assert (seen[("tickwire_engine_up",)], seen["tickwire_feed_up", "kraken"]) == (up, up)
    assert (seen[("tickwire_engine_age_seconds",)], seen[("tickwire_candles_waiting",)]) == (silent_s, 4)


def test_engine_that_never_spoke_is_down_and_has_no_age() -> None:
    seen = scrape()

    assert seen[("tickwire_engine_up",)] == 0
    assert ("tickwire_engine_age_seconds",) not in seen


@pytest.mark.parametrize(("writer", "writes"), [("host:1:a", 1), ("", 0)])
def test_engine_without_the_lease_writes_nothing_and_a_clock_that_was_set_is_counted(
    writer: str, writes: int
) -> None:
    tell(writer=writer, clock_off_ms=-300_000, clock_steps=2)

    seen = scrape()

    assert seen[("tickwire_engine_is_writer",)] == writes
    assert seen["tickwire_engine_info", "e1", writer] == 1
    assert (seen[("tickwire_clock_ahead_seconds",)], seen[("tickwire_clock_steps_total",)]) == (-300, 2)


@pytest.mark.usefixtures("per_symbol")
@pytest.mark.parametrize(
    ("age_s", "calendar", "state"),
    [(0, "24/7", "open"), (60.5, "24/7", "stale"), (60.5, "Mon-Fri 13:00-14:00", "closed")],
)
def test_quote_has_its_age_and_the_instrument_its_one_state(age_s: float, calendar: str, state: str) -> None:
    make_instrument(calendar=make_calendar("hours", calendar))
    put_quote(at_ms=NOON_MS - round(age_s * 1000))

    seen = scrape()

    assert seen["tickwire_quote_age_seconds", "EURUSD"] == age_s
    states = {name: seen["tickwire_instrument_state", name, "EURUSD"] for name in ("open", "closed", "stale")}
    assert states == {name: name == state for name in states}
    assert {name: seen["tickwire_instruments", name] for name in states} == states


@pytest.mark.usefixtures("per_symbol")
def test_switch_to_the_fallback_is_counted_and_lasts_and_no_scrape_asks_the_database(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    make_instrument()
    on_fallback = make_instrument_status(feed="binance", feeds=("kraken", "binance"), switches=3, ticks=900)
    tell((make_feed_status(),), (on_fallback,))

    with django_assert_num_queries(0):
        seen = scrape()

    assert seen["tickwire_feed_switches_total", "EURUSD"] == 3
    assert (
        seen["tickwire_instrument_on_fallback", "EURUSD"] == seen[("tickwire_instruments_on_fallback",)] == 1
    )
    assert seen["tickwire_instrument_ticks_total", "EURUSD"] == 900


def test_no_more_instruments_are_more_series_by_default() -> None:
    symbols = ("EURUSD", "GBPUSD", "USDJPY")
    sizes = []
    for number, symbol in enumerate(symbols, start=1):
        make_instrument(symbol)
        tell((make_feed_status(),), tuple(make_instrument_status(each) for each in symbols[:number]))
        seen = scrape()
        assert seen["tickwire_instruments", "stale"] == number
        sizes.append(len(seen))
    assert sizes == sizes[:1] * 3


@pytest.mark.usefixtures("per_symbol")
def test_statistics_are_those_of_the_last_24_hours_and_without_a_price_there_are_none() -> None:
    make_instrument()
    assert not [name for name, *_ in scrape() if "_day_" in name or "_age_" in name]
    minutes = put_candles("EURUSD", "1m", [NOON_MS - 2 * MINUTE_MS, NOON_MS - MINUTE_MS])
    prices.history(catalogue.get("EURUSD")).resume(minutes)

    seen = scrape()

    days = {name.removeprefix("tickwire_day_"): seen[name, "EURUSD"] for name, *_ in seen if "_day_" in name}
    assert days == {
        "open": 1.0801,
        "high": 1.0804,
        "low": 1.08,
        "last": 1.0803,
        "change": 0.0002,
        "change_ratio": 0.00019,
        "volume": 21,
    }


def test_metrics_are_served_with_those_of_the_process() -> None:
    tell((make_feed_status(),))

    page = CLIENT.get("/metrics").content.decode()

    assert 'tickwire_ticks_total{feed="kraken"} 1200.0' in page
    assert "tickwire_limit_fallbacks_total" in page
