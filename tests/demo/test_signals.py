"""The demo's market and signals, reckoned again from the simulated minutes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Model
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from accounts.models import ApiKey, User
from demo.market import seed_recent
from demo.past import make_pasts
from demo.people import seed_people
from demo.seeding import ACTIVE_SIGNALS, PAST_SIGNALS, seed_news, seed_signals
from instruments.catalogue import catalogue
from market.models import Candle, LastQuote
from market.simulated_past import simulated_minutes
from news.models import NewsItem
from signals_feed.models import Signal
from signals_feed.result_checks import check_signals
from tests.databases.emptying import empty_database
from tests.factories import NOON, make_calendar, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.served, pytest.mark.django_db]
SEEDED: tuple[type[Model], ...] = (User, ApiKey, Candle, LastQuote, Signal, NewsItem)


def quietly(text: str) -> None:
    """Progress that nobody watches."""


def seed(now_ms: int = NOON_MS) -> None:
    seed_people()
    seed_recent(now_ms, quietly)
    assert make_pasts(quietly, lambda: True)
    seed_signals(now_ms, quietly)
    seed_news(now_ms, quietly)


@pytest.fixture(scope="module", autouse=True)
def seeded(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """One demo for the file: making it takes longer than all its tests."""
    with override_settings(DEMO=True), django_db_blocker.unblock():
        # Short days, because a market that never closes takes four times as long to simulate.
        make_instrument("EURUSD", calendar=make_calendar("day", "Mon-Fri 09:00-14:00"))
        make_instrument("BTCUSD", digits=2, calendar=make_calendar("night", "Mon-Sun 22:30-03:30"))
        seed()
        yield
        # What the demo leaves when it goes, such as the ledger of its signals, is of no test after these.
        empty_database()


def rows() -> dict[str, list[dict[str, Any]]]:
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in SEEDED}


def test_seeding_again_changes_nothing() -> None:
    before = rows()
    seed()
    assert rows() == before


def test_every_signal_holds_and_so_it_counts() -> None:
    checks = check_signals(list(Signal.objects.select_related("instrument")))
    assert {check.fault for check in checks.values()} == {""}


def judged(signal: Signal) -> tuple[str, float]:
    """Why and where a signal ends. A minute does not say in which order it went through its prices, so the
    stop comes before the target, and it fills at the worst price unless the minute opened beyond it."""
    facts = catalogue.get(signal.instrument.symbol)
    start_ms = round(signal.published_at.timestamp() * 1000)
    stop, target = float(signal.stop_loss), float(signal.take_profit)
    is_buy = signal.direction == "buy"
    for minute in simulated_minutes(facts, start_ms, NOON_MS):
        worst, best = (minute.low, minute.high) if is_buy else (minute.ask_high, minute.ask_low)
        if worst <= stop if is_buy else worst >= stop:
            return "stop_loss", minute.open if is_buy and minute.open <= stop else worst
        if minute.opened_ms + 60_000 > start_ms + 7 * 86_400_000:
            return "expired", worst
        if best >= target if is_buy else best <= target:
            return "take_profit", target
    return "", 0.0


def test_signals_ended_as_the_simulated_market_says_or_are_active() -> None:
    signals = Signal.objects.select_related("instrument")
    assert signals.filter(status="closed").count() == PAST_SIGNALS
    assert signals.filter(status="active").count() == ACTIVE_SIGNALS
    for signal in signals:
        reason, price = judged(signal)
        hours = catalogue.get(signal.instrument.symbol).hours
        assert hours.is_open(round(signal.published_at.timestamp() * 1000) - 1)
        assert (signal.close_reason, signal.entry) == (reason, signal.tradable_price)
        assert signal.expires_at == signal.published_at + timedelta(days=7)
        if signal.status == "closed":
            assert signal.closed_at is not None
            assert signal.published_at <= signal.closed_at <= NOON
            assert signal.close_price == Decimal(f"{price:.{signal.instrument.digits}f}")
            assert signal.pnl is not None
            gained = (
                signal.close_price - signal.entry
                if signal.direction == "buy"
                else signal.entry - signal.close_price
            )
            assert abs(signal.pnl - gained / signal.instrument.pip_size) <= Decimal("0.05")


@pytest.mark.parametrize("timeframe", ["5m", "15m", "1h", "4h", "1d"])
@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD"])
def test_stored_candles_are_the_aggregate_of_the_stored_minutes(symbol: str, timeframe: str) -> None:
    span_s = {"5m": 300, "15m": 900, "1h": 3600, "4h": 14_400, "1d": 86_400}[timeframe]
    stored = Candle.objects.filter(instrument__symbol=symbol).order_by("opened_at")
    minutes: dict[int, list[Candle]] = {}
    for minute in stored.filter(timeframe="1m"):
        minutes.setdefault(int(minute.opened_at.timestamp()) // span_s * span_s, []).append(minute)
    coarser = {int(row.opened_at.timestamp()): row for row in stored.filter(timeframe=timeframe)}
    for opened_s, own in minutes.items():
        if opened_s + span_s > NOON.timestamp():
            continue
        row = coarser[opened_s]
        assert (row.open, row.close) == (own[0].open, own[-1].close)
        assert (row.high, row.low) == (max(m.high for m in own), min(m.low for m in own))
        assert row.volume == sum(m.volume for m in own)
