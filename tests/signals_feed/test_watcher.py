"""Cancelled and expired signals close at the next price that could be traded."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from instruments.catalogue import catalogue
from instruments.models import Instrument
from signals_feed.models import Signal
from signals_feed.services import cancel
from signals_feed.watcher import close_due
from tests.factories import NOON, make_calendar, make_instrument, make_signal, put_quote

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "own_market")]
NOON_MS = int(NOON.timestamp()) * 1000


@pytest.fixture
def instrument() -> Instrument:
    """It closes at 12:30 and opens at 13:30."""
    return make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))


def make_cancelled(instrument: Instrument, **fields: Any) -> Signal:
    signal = make_signal(instrument, **fields)
    cancel(signal, reason="wrong symbol", by="alice")
    return signal


def make_expired(instrument: Instrument, **fields: Any) -> Signal:
    published = {"published_at": NOON - timedelta(days=7), "expires_at": NOON}
    return make_signal(instrument, **(published | fields))


def told(signal: Signal) -> tuple[str, str, Decimal | None]:
    signal.refresh_from_db()
    return signal.status, signal.close_reason, signal.close_price


def test_cancelled_closes_at_the_current_bid_of_an_open_market(instrument: Instrument) -> None:
    signal = make_cancelled(instrument)
    put_quote(bid=1.0860, ask=1.0862)

    assert close_due() == 1
    assert told(signal) == ("closed", "cancelled", Decimal("1.0860"))


def test_cancelled_keeps_its_reason_and_its_result_counts(instrument: Instrument) -> None:
    signal = make_cancelled(instrument)
    put_quote(bid=1.0860, ask=1.0862)

    close_due()

    signal.refresh_from_db()
    assert (signal.cancel_reason, signal.pnl, signal.closed_at) == ("wrong symbol", Decimal(18), NOON)


def test_expired_sell_closes_at_the_current_ask(instrument: Instrument) -> None:
    sell = {"direction": "sell", "stop_loss": Decimal("1.09"), "take_profit": Decimal("1.08")}
    signal = make_expired(instrument, **sell)
    put_quote(bid=1.0860, ask=1.0862)

    close_due()

    assert told(signal) == ("closed", "expired", Decimal("1.0862"))


@pytest.mark.parametrize(("before_ms", "due"), [(0, 1), (1, 0)])
def test_signal_expires_at_its_moment_and_not_before(
    clock: time_machine.Traveller, instrument: Instrument, before_ms: int, due: int
) -> None:
    make_expired(instrument)
    clock.move_to(NOON - timedelta(milliseconds=before_ms))
    put_quote()

    assert close_due() == due


def test_cancelled_after_it_expired_is_cancelled(instrument: Instrument) -> None:
    signal = make_expired(instrument)
    cancel(signal, reason="wrong symbol", by="alice")
    put_quote()

    close_due()

    assert told(signal)[1] == "cancelled"


def test_active_signal_that_is_not_due_stays(instrument: Instrument) -> None:
    signal = make_signal(instrument, expires_at=NOON + timedelta(days=1))
    put_quote()

    assert close_due() == 0
    assert told(signal)[0] == "active"


def test_nothing_closes_before_there_is_a_quote(instrument: Instrument) -> None:
    make_cancelled(instrument)

    assert close_due() == 0


@pytest.mark.parametrize(("age_ms", "closed"), [(60_000, 1), (60_001, 0)])
def test_stale_quote_closes_nothing(instrument: Instrument, age_ms: int, closed: int) -> None:
    make_cancelled(instrument)
    put_quote(at_ms=NOON_MS - age_ms)

    assert close_due() == closed


@pytest.mark.parametrize("make", [make_cancelled, make_expired])
def test_on_a_closed_market_it_waits_for_the_first_tradable_quote(
    clock: time_machine.Traveller, instrument: Instrument, make: Any
) -> None:
    signal = make(instrument)
    clock.move_to(NOON + timedelta(minutes=30))
    put_quote(bid=1.0850, ask=1.0852, at_ms=NOON_MS + 1_799_000)
    assert close_due() == 0
    clock.move_to(NOON + timedelta(minutes=90))
    assert close_due() == 0, "the quote from before the pause"

    put_quote(bid=1.0830, ask=1.0832)

    assert close_due() == 1
    assert told(signal)[2] == Decimal("1.0830")


def test_signal_of_an_inactive_instrument_waits(instrument: Instrument) -> None:
    make_cancelled(instrument)
    put_quote()
    Instrument.objects.update(active=False)
    catalogue.load_now()

    assert close_due() == 0


def test_looking_again_closes_nothing_twice(instrument: Instrument) -> None:
    make_cancelled(instrument)
    put_quote()

    assert [close_due(), close_due()] == [1, 0]


def test_signal_that_cannot_be_closed_does_not_hold_up_the_others(
    instrument: Instrument, caplog: pytest.LogCaptureFixture
) -> None:
    """It was published by a clock ahead of ours, so its end would be before its beginning."""
    impossible = make_cancelled(instrument, published_at=NOON + timedelta(hours=1))
    signals = [make_cancelled(instrument), impossible, make_cancelled(instrument)]
    put_quote()

    assert close_due() == 2
    assert [told(signal)[0] for signal in signals] == ["closed", "active", "closed"]
    assert str(impossible.pk) in caplog.text
