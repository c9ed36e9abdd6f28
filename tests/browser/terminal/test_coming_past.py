"""The terminal of a demo whose past is still being made."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from instruments.models import Instrument
from market.models import UnfinishedPast
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import put_candles

from .test_terminal import SYMBOLS, beside, live, publisher, ticker

__all__ = ("publisher", "ticker")
HOUR_MS = 3_600_000


@pytest.fixture
def coming(publisher: User) -> None:
    """Of both instruments; somebody works on it."""
    for symbol in SYMBOLS:
        UnfinishedPast.objects.create(
            instrument=Instrument.objects.get(symbol=symbol),
            until_at=timezone.now(),
            maker="elsewhere:1:0.0",
            begun_at=timezone.now() + timedelta(hours=1),
        )


def finish(symbol: str) -> None:
    UnfinishedPast.objects.filter(instrument__symbol=symbol).update(made_at=timezone.now())


@pytest.mark.usefixtures("coming")
def test_a_strip_says_how_far_it_is_and_goes_away(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    # No past is taken before a candle that has ended, and an hour rarely ends between the first tick and it.
    page = live(open_page("/?tf=1h"))
    strip, caption = page.get_by_role("status").filter(has_text="past"), page.locator("#chart-caption")
    expect(strip).to_have_text("The demo's past is being made: 0 of 2 instruments")
    assert faults(page, "coming-past", "light") == []
    (tick,) = ticker("BTCUSD")
    expect(caption).to_contain_text("BTCUSD")

    opened_ms = [tick.time_ms - tick.time_ms % HOUR_MS - hours * HOUR_MS for hours in range(300, 1, -1)]
    put_candles("BTCUSD", "1h", opened_ms)
    beside(lambda: finish("BTCUSD"))
    expect(strip).to_have_text("The demo's past is being made: 1 of 2 instruments")
    expect(caption).to_contain_text("300 candles of 1h")

    signals = page.locator("#signals li.signal")
    beside(lambda: (publish_signal("EURUSD", publisher), UnfinishedPast.objects.all().delete()))
    expect(strip).to_have_count(0)
    expect(signals).to_contain_text("marta")


def test_without_one_that_is_coming_there_is_no_strip(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    assert page.locator("#coming").count() == 0
