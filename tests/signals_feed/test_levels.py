"""The levels of many signals in memory find what looking at each signal would have found."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.engine import FillTerms
from market.prices.candles import PriceBar
from market.prices.records import HistoryMinute, TickAccepted
from signals_feed.closing import Closing
from signals_feed.exits import SignalLevels, by_tick
from signals_feed.judging.active_signals import ActiveSignals
from signals_feed.judging.reading import SignalToWatch
from signals_feed.levels import MOST_REMOVED, RECENT, Highs, SymbolWatch, Watched
from signals_feed.rules import Quoted, SeenExtremes
from tests.factories import make_instrument

FAR = 10**12
values = st.integers(0, 20)


@settings(max_examples=100)
@given(st.lists(values | st.none(), max_size=60))
def test_the_highest_since_each_mark_is_known(story: list[int | None]) -> None:
    highs = Highs()
    marks: list[tuple[int, int]] = []
    seen: list[int] = []
    for step in story:
        if step is None:
            marks.append((highs.mark(), len(seen)))
        else:
            seen.append(step)
            if step > highs.values[-1]:
                highs.rise(step)
    for mark, begin in marks:
        assert highs.since(mark) == max(seen[begin:], default=-float("inf"))


def make_watched(number: int, direction: str, stop: int, target: int, ends_ms: int = FAR) -> Watched:
    terms = SignalLevels(direction, Decimal(stop), Decimal(target), 0, ends_ms)
    return Watched(UUID(int=number), "X", terms)


def tick(bid: int, ask: int, time_ms: int) -> TickAccepted:
    return TickAccepted("X", float(bid), float(ask), time_ms, 1.0, time_ms)


placings = st.tuples(
    st.just("place"), st.sampled_from(["buy", "sell"]), st.integers(1, 15), st.integers(1, 15), values
)
ticks = st.tuples(st.just("tick"), st.integers(85, 115), st.integers(0, 4))
removals = st.tuples(st.just("remove"), values)


class Naive:
    """Every signal is looked at on every tick."""

    def __init__(self) -> None:
        self.active: dict[UUID, tuple[Watched, list[int]]] = {}

    def take(self, at: TickAccepted) -> dict[UUID, tuple[int, int]]:
        """The signals that are met, and how far the exit side went for and against each."""
        met = {}
        for pk, (watched, prices) in list(self.active.items()):
            prices.append(int(at.bid if watched.levels.is_buy else at.ask))
            if by_tick(watched.levels, Quoted(Decimal(at.bid), Decimal(at.ask), at.time_ms)):
                best, worst = (max, min) if watched.levels.is_buy else (min, max)
                met[pk] = best(prices), worst(prices)
                del self.active[pk]
        return met


@settings(max_examples=100)
@given(st.lists(placings | ticks | removals, max_size=80))
def test_book_finds_whom_each_tick_meets_and_how_far_it_went(story: list[tuple[str, ...]]) -> None:
    watch, naive = SymbolWatch(), Naive()
    for number, (act, *what) in enumerate(story, 1):
        if act == "place":
            direction, risk, reward, life = what
            sign = 1 if direction == "buy" else -1
            ends_ms = number + int(life) if int(life) < 10 else FAR
            levels = 100 - sign * int(risk), 100 + sign * int(reward)
            watched = make_watched(number, str(direction), *levels, ends_ms)
            watch.add(watched)
            naive.active[watched.id] = watched, []
        elif act == "remove" and naive.active:
            pk = list(naive.active)[int(what[0]) % len(naive.active)]
            watch.remove(naive.active.pop(pk)[0])
        elif act == "tick":
            at = tick(int(what[0]), int(what[0]) + int(what[1]), number)
            found = {each.id: watch.side(each).extremes(each) for each in watch.take(at)}
            assert found == naive.take(at)
    assert watch.buys.live + watch.sells.live == len(naive.active)


def test_signals_that_were_closed_elsewhere_leave_the_heaps() -> None:
    watch = SymbolWatch()
    for number in range(10 * MOST_REMOVED):
        watched = make_watched(number, "buy", 50 + number % 7, 150)
        watch.add(watched)
        watch.remove(watched)
    assert len(watch.buys.stops) <= 2 * MOST_REMOVED


def test_only_so_many_ticks_are_remembered_and_where_they_begin_is_known() -> None:
    watch, dropped = SymbolWatch(), []
    for number in range(RECENT + 1):
        watch.take(tick(100, 101, number))
        dropped.append(watch.dropped_ms)
    assert len(watch.recent) == RECENT
    assert dropped[-2:] == [None, 0]


def test_signal_that_a_tick_only_seemed_to_meet_is_watched_on() -> None:
    stop, met = Decimal("1234567890.12345678"), 1234567890.1234568
    watch = SymbolWatch()
    watched = Watched(UUID(int=1), "X", SignalLevels("buy", stop, Decimal(2 * 10**9), 0, FAR))
    watch.add(watched)
    assert watch.take(TickAccepted("X", met, met, 1, 1.0, 1)) == [watched]
    watch.add(watched)
    assert watch.take(tick(5, 5, 2)) == [watched]


# Signals that are heard of after the ticks and minutes that close them.
def bought(number: int, bid: int, stop: int, target: int, at_ms: int) -> SignalToWatch:
    """Published by the tick of this time, whose number is the same."""
    levels = SignalLevels("buy", Decimal(stop), Decimal(target), at_ms, FAR)
    entry = Quoted(Decimal(bid), Decimal(bid + 1), at_ms, "epoch", at_ms)
    return SignalToWatch(UUID(int=number), "EURUSD", 1, levels, entry)


def bid_at(bid: int, at_ms: int) -> TickAccepted:
    return TickAccepted("EURUSD", float(bid), float(bid + 1), at_ms, 1.0, at_ms)


def ended(closings: list[Closing]) -> list[tuple[int, str]]:
    return [(closing.signal.int, closing.reason) for closing in closings]


def watching(*ticks: tuple[int, int]) -> tuple[ActiveSignals, list[Closing]]:
    closings: list[Any] = []
    active = ActiveSignals(lambda: "epoch", closings.append, 0, lambda _: FillTerms(1_000), {})
    active.settle()
    for bid, at_ms in ticks:
        active.take(bid_at(bid, at_ms))
    return active, closings


def test_signal_that_was_hit_before_it_was_heard_of_saw_no_price_from_before_it() -> None:
    active, closings = watching((100, 1000))
    active.admit([bought(1, 100, 50, 200, 1000)])
    for bid, at_ms in ((60, 2000), (150, 3000), (100, 4000), (103, 5000), (89, 6000)):
        active.take(bid_at(bid, at_ms))
    active.admit([bought(2, 100, 90, 120, 4000)])
    assert ended(closings) == [(2, "stop_loss")]
    assert closings[0].seen == SeenExtremes(Decimal(103), Decimal(89), 0)


@pytest.mark.django_db
def test_signal_that_a_minute_closed_before_it_was_watched_leaves_the_others_watched() -> None:
    make_instrument(digits=0)
    closings: list[Any] = []
    active = ActiveSignals(lambda: "epoch", closings.append, 0, lambda _: FillTerms(1_000), {})
    minute = PriceBar(60_000, 100, 100, 80, 90, 1, ask_high=101, ask_low=81)
    active.refill(HistoryMinute("EURUSD", minute, "bid"))
    active.admit([bought(1, 100, 90, 120, 50_000), bought(2, 100, 70, 120, 50_000)])
    active.settle()
    active.take(bid_at(69, 200_000))
    assert ended(closings) == [(1, "stop_loss"), (2, "stop_loss")]


def test_signal_that_is_cancelled_keeps_how_far_its_price_went() -> None:
    active, closings = watching((100, 1000))
    signal = bought(1, 100, 50, 200, 1000)
    active.admit([signal])
    for bid, at_ms in ((130, 2000), (80, 3000), (100, 4000)):
        active.take(bid_at(bid, at_ms))
    active.admit([signal._replace(levels=signal.levels._replace(ends_ms=4500, ending="cancelled"))])
    active.take(bid_at(101, 5000))
    assert ended(closings) == [(1, "cancelled")]
    assert closings[0].seen == SeenExtremes(Decimal(130), Decimal(80), 0)


@pytest.mark.parametrize(("epoch", "seq"), [("epoch", 2000), ("another", 9999)], ids=["number", "time"])
def test_first_tick_after_its_own_judges_a_signal(epoch: str, seq: int) -> None:
    active, closings = watching((80, 1000), (100, 2000), (89, 2001), (70, 3000))
    entry = Quoted(Decimal(100), Decimal(101), 2000, epoch, seq)
    active.admit([bought(1, 100, 90, 120, 2000)._replace(entry=entry)])
    assert [closing.price for closing in closings] == [Decimal(89)]
