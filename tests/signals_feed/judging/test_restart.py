"""A watcher that ended, in order or not: what it saw is closed as if it had gone on, and none is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import OperationalError

from core.threads import in_thread
from instruments.models import Instrument
from market.models import Candle, EngineState, LastQuote
from market.store.lease import LeaseLost
from signals_feed.closing import Closing
from signals_feed.judging.active_signals import Noted
from signals_feed.judging.watcher import STORED_AFTER_MS, write_notes
from signals_feed.ledger.verify import verify
from signals_feed.levels import RECENT
from signals_feed.models import Hit, Signal, WatchMark
from signals_feed.publishing.actions import cancel
from signals_feed.rules import Quoted
from tests.databases.queries import around_statements
from tests.factories import NOON, make_candle
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import SELL, close_at, make_published

from .watched_engine import Act, WatchedEngine, killed, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]


def told(signal: Signal) -> tuple[str, Decimal | None]:
    signal.refresh_from_db()
    return signal.close_reason, signal.close_price


async def hit(watched: WatchedEngine) -> None:
    """Two ticks: the second is far beyond the stop, and there is no time to close."""
    await watched.stall()
    watched.tick(1.0850, 1.0851, NOON_MS + 1000)
    watched.tick(1.0790, 1.0791, NOON_MS + 2000)


async def recovered(watched: WatchedEngine) -> None:
    """The market is back where it was."""
    watched.tick(1.0850, 1.0851, NOON_MS + 10_000)
    await watched.settle()


async def hit_and_write(watched: WatchedEngine) -> None:
    await hit(watched)
    await watched.runner.writer.flush()
    assert await in_thread(Hit.objects.count) == 1


def test_tick_that_was_written_closes_after_a_kill_at_its_own_price() -> None:
    signal = make_published()
    killed(hit_and_write)
    assert told(signal) == ("", None)
    run(recovered)
    exit_ = signal.evidence.get(kind="exit")
    assert told(signal) == ("stop_loss", Decimal("1.0790"))
    assert (exit_.bid, exit_.seq, exit_.at) == (Decimal("1.0790"), 2, NOON + timedelta(seconds=2))
    assert verify()[::2] == (2, "")


async def fall_on(watched: WatchedEngine, ticks: int) -> None:
    """After the tick that is beyond the stop the price falls further, into the next minute."""
    await hit(watched)
    for number in range(ticks):
        watched.tick(1.0770, 1.0771, NOON_MS + 3_000 + number)
    watched.tick(1.0770, 1.0771, NOON_MS + 61_000)


def test_tail_that_is_written_first_thing_closes_at_its_tick_and_not_at_the_worst_of_its_minute(
    clock: time_machine.Traveller,
) -> None:
    signal = make_published()
    tail = killed(partial(fall_on, ticks=1))
    clock.move_to(NOON + timedelta(minutes=5))

    async def write_at_once() -> None:
        watched = WatchedEngine(tail)
        await watched.events.start()
        assert await watched.runner.writer.try_lease()
        await watched.runner.start()
        await watched.runner.writer.flush()
        await watched.settle()
        await watched.leave()

    asyncio.run(write_at_once())
    # While the signal is closed, the engine may go on to the next minute.
    assert Candle.objects.filter(timeframe="1m").earliest("opened_at").low == Decimal("1.0770")
    assert told(signal) == ("stop_loss", Decimal("1.0790"))


@pytest.mark.parametrize("act", [hit, partial(fall_on, ticks=2 * RECENT)], ids=["few", "more than is kept"])
def test_ticks_that_were_on_the_bus_close_in_the_stand_in(act: Act[None]) -> None:
    signal = make_published()
    run(WatchedEngine.settle, killed(act))
    assert told(signal) == ("stop_loss", Decimal("1.0790"))


def test_minutes_that_are_simulated_as_the_engine_starts_are_judged(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()
    clock.move_to(NOON + timedelta(minutes=5))

    async def simulate(watched: WatchedEngine) -> None:
        await in_thread(minute_after, instrument, 2, low="1.0700")
        await watched.watcher.stored({instrument.symbol})
        await watched.settle()

    run(simulate)
    assert told(signal) == ("stop_loss", Decimal("1.0700"))


def test_tick_that_nobody_has_did_not_happen() -> None:
    signal = make_published()
    killed(hit)
    assert not LastQuote.objects.exists()
    run(recovered)
    assert told(signal) == ("", None)


def lose_the_lease() -> None:
    EngineState.objects.update(writer="another:1:x")


def test_hit_and_the_checkpoint_with_its_tick_are_written_together_or_not_at_all() -> None:
    make_published()

    async def go(watched: WatchedEngine) -> None:
        await hit(watched)
        await in_thread(lose_the_lease)
        await watched.runner.writer.flush()

    killed(go)
    assert (Hit.objects.count(), LastQuote.objects.count()) == (0, 0)


def test_engine_that_lost_the_lease_closes_nothing() -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        await in_thread(lose_the_lease)
        await hit(watched)
        assert watched.watcher.closer is not None
        with pytest.raises(LeaseLost):
            await watched.watcher.closer.work_off()

    killed(go)
    assert told(signal) == ("", None)


def test_signal_that_was_closed_by_hand_before_the_restart_keeps_its_result() -> None:
    signal = make_published()
    killed(hit_and_write)
    close_at(signal, Decimal("1.0850"), Decimal("1.0851"), at=NOON + timedelta(seconds=5))
    run(recovered)
    assert told(signal) == ("manual", Decimal("1.0850"))
    assert Hit.objects.count() == 0


def minute_after(instrument: Instrument, number: int, **prices: str) -> Candle:
    fields: dict[str, Any] = {"open": "1.0850", "high": "1.0855", "low": "1.0845", "close": "1.0850"}
    fields |= {"ask_high": "1.0857", "ask_low": "1.0847", "basis": "bid"} | prices
    decimals: dict[str, Any] = {
        name: value if name in ("basis", "source") else Decimal(value) for name, value in fields.items()
    }
    return make_candle(instrument, opened_at=NOON + timedelta(minutes=number), **decimals)


WHILE_AWAY: list[tuple[dict[str, Any], dict[str, str], tuple[str, str]]] = [
    ({}, {"low": "1.0805"}, ("stop_loss", "1.0805")),
    ({}, {"high": "1.0950"}, ("take_profit", "1.09")),
    ({}, {"open": "1.0800", "low": "1.0790"}, ("stop_loss", "1.08")),
    (SELL, {"ask_high": "1.0875"}, ("stop_loss", "1.0875")),
    (SELL, {"ask_low": "1.0799"}, ("take_profit", "1.08")),
    ({}, {"low": "1.0805", "basis": "trades"}, ("", "")),
]


@pytest.mark.parametrize(("terms", "prices", "expected"), WHILE_AWAY)
def test_what_was_stored_while_nobody_watched_is_judged(
    clock: time_machine.Traveller,
    instrument: Instrument,
    terms: dict[str, Any],
    prices: dict[str, str],
    expected: tuple[str, str],
) -> None:
    signal = make_published(**terms)
    minute_after(instrument, 1)
    minute_after(instrument, 2, **prices)
    clock.move_to(NOON + timedelta(minutes=5))
    run(WatchedEngine.settle)
    reason, price = expected
    assert told(signal) == (reason, Decimal(price) if price else None)
    if reason:
        exit_ = signal.evidence.get(kind="exit")
        assert (exit_.source, exit_.at) == ("candle", NOON + timedelta(minutes=2))


def test_minute_of_the_publication_itself_judges_nothing(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published(published_at=NOON + timedelta(seconds=30))
    minute_after(instrument, 0, low="1.0700")
    clock.move_to(NOON + timedelta(minutes=5))
    run(WatchedEngine.settle)
    assert told(signal) == ("", None)


def test_minutes_that_were_made_before_a_kill_and_not_judged_are_judged_by_the_next(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.runner.writer.is_behind = True
        clock.move_to(NOON + timedelta(minutes=5))
        await watched.runner.writer.flush()

    killed(go)
    minute_after(instrument, 2, low="1.0700")
    run(WatchedEngine.settle)
    assert told(signal)[0] == "stop_loss"


def test_minutes_that_could_not_be_judged_are_judged_once_the_database_answers(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()

    def refuse(sql: str, _: Callable[[], Any]) -> Any:
        raise OperationalError("the database is away")

    async def go(watched: WatchedEngine) -> None:
        clock.move_to(NOON + timedelta(minutes=5))
        await in_thread(minute_after, instrument, 2, low="1.0700")
        with around_statements(refuse), pytest.raises(OperationalError):
            await watched.watcher.stored({instrument.symbol})
        await watched.runner.writer.flush()
        await watched.settle()

    run(go)
    assert told(signal)[0] == "stop_loss"


def test_first_tick_after_the_pause_judges_what_nobody_stored(clock: time_machine.Traveller) -> None:
    signal = make_published()
    killed(WatchedEngine.settle)
    clock.move_to(NOON + timedelta(minutes=5))

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0795, 1.0796, NOON_MS + 300_000)
        await watched.settle()

    run(go)
    assert told(signal) == ("stop_loss", Decimal("1.0795"))
    assert signal.evidence.get(kind="exit").source == "first_after_gap"


def test_minutes_that_were_watched_are_not_judged_again(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        clock.move_to(NOON + timedelta(minutes=5))
        watched.tick(1.0850, 1.0851, NOON_MS + 300_000)
        await watched.settle()
        await watched.runner.writer.flush()

    killed(go)
    assert WatchMark.objects.get().watched_until == NOON + timedelta(minutes=5)
    minute_after(instrument, 2, low="1.0700")
    clock.move_to(NOON + timedelta(minutes=6))
    run(WatchedEngine.settle)
    assert told(signal) == ("", None)


@pytest.mark.parametrize("act", ["cancel", "expire"])
def test_what_ended_while_nobody_watched_leaves_at_the_worst_price_of_the_minute(
    clock: time_machine.Traveller, instrument: Instrument, act: str
) -> None:
    signal = make_published(expires_at=NOON + timedelta(seconds=100))
    if act == "cancel":
        clock.move_to(NOON + timedelta(seconds=90))
        cancel(signal, reason="wrong symbol", by="alice")
    minute_after(instrument, 1)
    clock.move_to(NOON + timedelta(minutes=5))
    run(WatchedEngine.settle)
    assert told(signal) == ("cancelled" if act == "cancel" else "expired", Decimal("1.0845"))


def test_excursions_before_the_restart_come_from_the_stored_minutes(
    clock: time_machine.Traveller, instrument: Instrument
) -> None:
    signal = make_published()
    minute_after(instrument, 1, high="1.0880", low="1.0830")
    clock.move_to(NOON + timedelta(minutes=5))

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0860, 1.0861, NOON_MS + 300_000)
        watched.tick(1.0809, 1.0810, NOON_MS + 301_000)
        await watched.settle()

    run(go)
    exit_ = signal.evidence.get(kind="exit")
    assert (exit_.best, exit_.worst) == (Decimal("1.0880"), Decimal("1.0809"))


# Stored minutes of a signal's past: those that were watched, and those out of files, say nothing of it.
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
        await in_thread(minute_after, instrument, 1, low="1.0700", source="push")
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
    minute_after(instrument, 1, low="1.0700", source=source)
    clock.move_to(NOON + timedelta(minutes=5))
    run(WatchedEngine.settle)
    signal.refresh_from_db()
    assert signal.close_reason == reason


@pytest.mark.parametrize(("source", "worst"), [("push", "1.0700"), ("import", "1.0841")])
def test_price_went_no_further_than_somebody_was_quoted(
    instrument: Instrument, source: str, worst: str
) -> None:
    signal = make_published()
    minute_after(instrument, 1, low="1.0700", source=source)
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


# What is written with the engine's checkpoint: up to when minutes were judged, and what was hit.
async def mark(watched: WatchedEngine) -> timedelta | None:
    await in_thread(watched.watcher.notes())
    found = await in_thread(WatchMark.objects.first)
    return None if found is None else found.watched_until - NOON


def test_minutes_are_judged_up_to_the_one_that_forms_unless_a_signal_is_unread(
    clock: time_machine.Traveller,
) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        await watched.watcher.loop.stop()
        clock.move_to(NOON + timedelta(seconds=150))
        assert await mark(watched) == timedelta(minutes=2)
        watched.watcher.read_soon({"signal": str(signal.pk)})
        clock.move_to(NOON + timedelta(seconds=270))
        assert await mark(watched) == timedelta(minutes=2)
        await watched.settle()
        assert await mark(watched) == timedelta(minutes=4)

    run(go)


def test_minutes_that_are_judged_later_are_not_judged_yet(clock: time_machine.Traveller) -> None:
    async def go(watched: WatchedEngine) -> None:
        await watched.watcher.loop.stop()
        for number in range(RECENT + 10):
            watched.tick(1.0850, 1.0851, NOON_MS + 1000 + number)
        await in_thread(make_published)
        clock.move_to(NOON + timedelta(seconds=90))
        await watched.settle()
        assert await mark(watched) is None
        clock.move_to(NOON + timedelta(seconds=90, milliseconds=STORED_AFTER_MS))
        await watched.settle()
        assert await mark(watched) == timedelta(minutes=2)

    run(go)


def test_hit_of_a_signal_that_others_closed_is_not_noted() -> None:
    signal = make_published()
    quote = Quoted(Decimal("1.0790"), Decimal("1.0791"), NOON_MS)
    hit = Closing.at_current(signal, "stop_loss", quote, NOON_MS)
    close_at(signal, quote.bid, quote.ask)
    write_notes([hit], Noted({}), 0)
    assert not Hit.objects.exists()
