"""Signals that are heard of after the ticks and minutes that close them."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest

from market.prices.candles import PriceBar
from market.prices.records import HistoryMinute, TickAccepted
from signals_feed.closing import Closing
from signals_feed.judging.active_signals import ActiveSignals, SignalToWatch
from signals_feed.rules import Quoted, SeenExtremes, SignalLevels
from tests.factories import make_instrument

FAR = 10**12


def bought(number: int, bid: int, stop: int, target: int, at_ms: int) -> SignalToWatch:
    """Published by the tick of this time, whose number is the same."""
    levels = SignalLevels("buy", Decimal(stop), Decimal(target), at_ms, FAR)
    entry = Quoted(Decimal(bid), Decimal(bid + 1), at_ms, "epoch", at_ms)
    return SignalToWatch(UUID(int=number), "EURUSD", 1, levels, entry)


def tick(bid: int, at_ms: int) -> TickAccepted:
    return TickAccepted("EURUSD", float(bid), float(bid + 1), at_ms, 1.0, at_ms)


def closed(closings: list[Closing]) -> list[tuple[int, str]]:
    return [(closing.signal.int, closing.reason) for closing in closings]


def watching(*ticks: tuple[int, int]) -> tuple[ActiveSignals, list[Closing]]:
    closings: list[Closing] = []
    active = ActiveSignals(lambda: "epoch", closings.append, 0)
    active.settle()
    for bid, at_ms in ticks:
        active.take(tick(bid, at_ms))
    return active, closings


def test_signal_that_was_hit_before_it_was_heard_of_saw_no_price_from_before_it() -> None:
    active, closings = watching((100, 1000))
    active.admit([bought(1, 100, 50, 200, 1000)])
    for bid, at_ms in ((60, 2000), (150, 3000), (100, 4000), (103, 5000), (89, 6000)):
        active.take(tick(bid, at_ms))
    active.admit([bought(2, 100, 90, 120, 4000)])
    assert closed(closings) == [(2, "stop_loss")]
    assert closings[0].seen == SeenExtremes(Decimal(103), Decimal(89), 0)


@pytest.mark.django_db
def test_signal_that_a_minute_closed_before_it_was_watched_leaves_the_others_watched() -> None:
    make_instrument(digits=0)
    closings: list[Closing] = []
    active = ActiveSignals(lambda: "epoch", closings.append, 0)
    minute = PriceBar(60_000, 100, 100, 80, 90, 1, ask_high=101, ask_low=81)
    active.refill(HistoryMinute("EURUSD", minute, "bid"))
    active.admit([bought(1, 100, 90, 120, 50_000), bought(2, 100, 70, 120, 50_000)])
    active.settle()
    active.take(tick(69, 200_000))
    assert closed(closings) == [(1, "stop_loss"), (2, "stop_loss")]


def test_signal_that_is_cancelled_keeps_how_far_its_price_went() -> None:
    active, closings = watching((100, 1000))
    signal = bought(1, 100, 50, 200, 1000)
    active.admit([signal])
    for bid, at_ms in ((130, 2000), (80, 3000), (100, 4000)):
        active.take(tick(bid, at_ms))
    active.admit([signal._replace(levels=signal.levels._replace(ends_ms=4500, ending="cancelled"))])
    active.take(tick(101, 5000))
    assert closed(closings) == [(1, "cancelled")]
    assert closings[0].seen == SeenExtremes(Decimal(130), Decimal(80), 0)


@pytest.mark.parametrize(("epoch", "seq"), [("epoch", 2000), ("another", 9999)], ids=["number", "time"])
def test_first_tick_after_its_own_judges_a_signal(epoch: str, seq: int) -> None:
    active, closings = watching((80, 1000), (100, 2000), (89, 2001), (70, 3000))
    entry = Quoted(Decimal(100), Decimal(101), 2000, epoch, seq)
    active.admit([bought(1, 100, 90, 120, 2000)._replace(entry=entry)])
    assert [closing.price for closing in closings] == [Decimal(89)]
