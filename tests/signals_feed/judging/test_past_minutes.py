"""Stored minutes of a signal's past: those that were watched, and those out of files, say nothing of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from core.threads import in_thread
from instruments.models import Instrument
from signals_feed.levels import RECENT
from signals_feed.models import Signal
from signals_feed.publishing.actions import cancel
from tests.factories import NOON, make_candle
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import close_at, make_published

from .watched_engine import WatchedEngine, run

pytestmark = pytest.mark.usefixtures("instrument")


def through_the_stop(instrument: Instrument, source: str) -> None:
    prices = {"open": "1.0850", "high": "1.0855", "low": "1.0700", "close": "1.0850"}
    prices |= {"ask_high": "1.0857", "ask_low": "1.0702"}
    decimals: dict[str, Any] = {name: Decimal(price) for name, price in prices.items()}
    make_candle(instrument, opened_at=NOON + timedelta(minutes=1), source=source, **decimals)


def test_cancellation_does_not_judge_the_past_that_was_watched(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        clock.move_to(NOON + timedelta(minutes=5))
        for number in range(RECENT + 10):
            watched.tick(1.0850, 1.0851, NOON_MS + 299_000 + number)
        await watched.settle()
        # Somebody writes history over what was seen live.
        await in_thread(through_the_stop, instrument, "push")
        await in_thread(cancel, signal, reason="wrong symbol", by="alice")
        await watched.settle()

    run(go)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0850"))


@pytest.mark.parametrize(("source", "reason"), [("push", "stop_loss"), ("import", "")])
def test_imported_minute_ends_no_signal(
    clock: time_machine.Traveller, instrument: Instrument, source: str, reason: str
) -> None:
    signal = make_published()
    through_the_stop(instrument, source)
    clock.move_to(NOON + timedelta(minutes=5))
    run(WatchedEngine.settle)
    signal.refresh_from_db()
    assert signal.close_reason == reason


@pytest.mark.parametrize(("source", "worst"), [("push", "1.0700"), ("import", "1.0841")])
def test_price_went_no_further_than_somebody_was_quoted(
    instrument: Instrument, source: str, worst: str
) -> None:
    signal = make_published()
    through_the_stop(instrument, source)
    close_at(signal, Decimal("1.0850"), Decimal("1.0851"), at=NOON + timedelta(minutes=5))
    assert signal.evidence.get(kind="exit").worst == Decimal(worst)


@pytest.mark.parametrize(
    ("published_s", "now_s", "cancelled_s"),
    [(0, 300, 300), (3, 0, 3)],
    ids=["the market is ahead of the machine", "a venue was ahead of us when it was published"],
)
def test_cancelled_is_dated_by_the_market_and_never_before_its_publication(
    monkeypatch: pytest.MonkeyPatch, published_s: int, now_s: int, cancelled_s: int
) -> None:
    signal = make_published(published_at=NOON + timedelta(seconds=published_s))
    monkeypatch.setattr("core.clock.now_ms", lambda: NOON_MS + now_s * 1000)
    cancel(signal, reason="wrong symbol", by="alice")
    assert Signal.objects.get().cancelled_at == NOON + timedelta(seconds=cancelled_s)
