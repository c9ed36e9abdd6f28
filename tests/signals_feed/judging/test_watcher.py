"""The watcher beside a running engine: which tick closes which signal, at what price, and what shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.db import OperationalError

from core.threads import in_thread
from market.prices.candles import PriceBar
from market.prices.records import HistoryMinute, TickAccepted
from signals_feed.models import Evidence, Signal
from signals_feed.publishing.actions import cancel
from tests.databases.queries import around_statements
from tests.factories import NOON
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import SELL, close_at, make_published

from .watched_engine import WatchedEngine, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]


def told(signal: Signal) -> tuple[str, str, Decimal | None]:
    signal.refresh_from_db()
    return signal.status, signal.close_reason, signal.close_price


def proof(signal: Signal) -> Evidence:
    return signal.evidence.get(kind="exit")


def after(*ticks: tuple[float, float], every_ms: int = 1000) -> Any:
    async def go(watched: WatchedEngine) -> None:
        for number, (bid, ask) in enumerate(ticks, 1):
            watched.tick(bid, ask, NOON_MS + number * every_ms)
        await watched.settle()

    return go


@pytest.mark.parametrize(
    ("terms", "ticks", "expected"),
    [
        ({}, [(1.0842, 1.0843), (1.0950, 1.0951)], ("take_profit", "1.09")),
        ({}, [(1.0842, 1.0843), (1.0810, 1.0811)], ("stop_loss", "1.081")),
        ({}, [(1.0811, 1.0900), (1.0899, 1.0950)], None),
        (SELL, [(1.0842, 1.0843), (1.0799, 1.0800)], ("take_profit", "1.08")),
        (SELL, [(1.0842, 1.0843), (1.0880, 1.0890)], ("stop_loss", "1.089")),
        (SELL, [(1.0790, 1.0801), (1.0868, 1.0869)], None),
        (SELL, [(1.0700, 1.0900)], ("stop_loss", "1.09")),
    ],
)
def test_a_tick_at_a_level_closes_on_the_exit_side(
    terms: dict[str, Any], ticks: list[tuple[float, float]], expected: tuple[str, str] | None
) -> None:
    signal = make_published(**terms)
    run(after(*ticks))
    status, reason, price = told(signal)
    assert (status, reason, price) == (
        ("closed", expected[0], Decimal(expected[1])) if expected else ("active", "", None)
    )


@pytest.mark.parametrize(("every_ms", "source"), [(1000, "tick"), (61_000, "first_after_gap")])
def test_the_tick_that_closed_it_is_kept_and_whether_it_came_after_a_gap(every_ms: int, source: str) -> None:
    signal = make_published()
    run(after((1.0842, 1.0843), (1.0790, 1.0792), every_ms=every_ms))
    exit_ = proof(signal)
    assert (exit_.bid, exit_.ask, exit_.seq) == (Decimal("1.0790"), Decimal("1.0792"), 2)
    assert (exit_.source, exit_.rule) == (source, "stop")
    assert exit_.at == NOON + 2 * timedelta(milliseconds=every_ms)


def test_how_far_the_price_went_is_kept() -> None:
    signal = make_published()
    run(after((1.0850, 1.0851), (1.0820, 1.0821), (1.0880, 1.0881), (1.0805, 1.0806)))
    exit_ = proof(signal)
    assert (exit_.best, exit_.worst) == (Decimal("1.0880"), Decimal("1.0805"))
    signal.refresh_from_db()
    assert (signal.best_r, signal.worst_r) == (Decimal("1.1875"), Decimal("-1.1563"))


@pytest.mark.parametrize(
    ("terms", "bid", "best"), [({}, 1.0950, "1.09"), (SELL, 1.0700, "1.08")], ids=["buy", "sell"]
)
def test_what_the_tick_showed_beyond_the_target_earned_nothing(
    terms: dict[str, Any], bid: float, best: str
) -> None:
    signal = make_published(**terms)
    run(after((bid, bid + 0.0001)))
    assert proof(signal).best == Decimal(best)
    signal.refresh_from_db()
    assert signal.best_r == signal.pnl_r


def test_signal_that_is_published_while_it_runs_is_watched_from_its_own_tick_on() -> None:
    async def go(watched: WatchedEngine) -> Signal:
        watched.tick(1.0790, 1.0791, NOON_MS + 1000)
        watched.tick(1.0841, 1.0842, NOON_MS + 2000)
        signal: Signal = await in_thread(lambda: make_published(published_at=NOON + timedelta(seconds=2)))
        # Heard of only after the tick that closes it.
        watched.tick(1.0801, 1.0802, NOON_MS + 3000)
        watched.tick(1.0850, 1.0851, NOON_MS + 4000)
        await watched.settle()
        return signal

    signal = run(go)
    assert told(signal) == ("closed", "stop_loss", Decimal("1.0801"))


def test_what_is_said_of_a_signal_while_it_is_read_is_read_once_more() -> None:
    async def go(watched: WatchedEngine) -> set[UUID]:
        await watched.watcher.loop.stop()
        signal = await in_thread(make_published)
        event = {"signal": str(signal.pk)}
        watched.watcher.read_soon(event)
        looking = asyncio.create_task(watched.watcher.look())
        await asyncio.sleep(0)
        watched.watcher.read_soon(event)
        await looking
        return watched.watcher.unread

    unread = run(go)
    assert unread == {Signal.objects.get().pk}


def test_signal_that_could_not_be_read_is_read_once_the_database_answers() -> None:
    def refuse(sql: str, execute: Callable[[], Any]) -> Any:
        raise OperationalError("the database is away")

    async def go(watched: WatchedEngine) -> Signal:
        await watched.watcher.loop.stop()
        signal: Signal = await in_thread(make_published)
        await watched.events.read()
        with around_statements(refuse), pytest.raises(OperationalError):
            await watched.watcher.look()
        watched.tick(1.0790, 1.0791, NOON_MS + 1000)
        await watched.settle()
        return signal

    signal = run(go)
    assert told(signal)[1:] == ("stop_loss", Decimal("1.0790"))


def test_signal_that_is_closed_while_it_is_read_is_not_watched() -> None:
    async def go(watched: WatchedEngine) -> list[UUID]:
        await watched.watcher.loop.stop()
        closed = {"signal": str((await in_thread(make_published)).pk)}
        await watched.events.read()
        assert watched.watcher.active is not None
        loop, seen = asyncio.get_running_loop(), []

        def close_behind(sql: str, execute: Callable[[], Any]) -> Any:
            found = execute()
            if "signals_feed_signal" in sql:
                seen.append(sql)
                loop.call_soon_threadsafe(watched.watcher.forget, closed)
            return found

        with around_statements(close_behind):
            await watched.watcher.look()
        assert seen
        return list(watched.watcher.active.watched)

    assert run(go) == []


def test_signal_that_others_closed_is_left_alone() -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0850, 1.0851, NOON_MS + 1000)
        await in_thread(lambda: close_at(signal, Decimal("1.0850"), Decimal("1.0851"), at=NOON))
        await watched.settle()
        assert watched.watcher.active is not None
        assert watched.watcher.active.watched == {}
        watched.tick(1.0790, 1.0791, NOON_MS + 2000)
        await watched.settle()

    run(go)
    assert told(signal)[1] == "manual"


def test_cancelled_leaves_at_once_at_the_current_price() -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0860, 1.0862, NOON_MS)
        await in_thread(cancel, signal, reason="wrong symbol", by="alice")
        await watched.settle()

    run(go)
    assert told(signal) == ("closed", "cancelled", Decimal("1.0860"))
    assert proof(signal).rule == "current"


@pytest.mark.parametrize("terms", [{}, SELL], ids=["buy", "sell"])
def test_expired_leaves_at_the_exit_side(clock: time_machine.Traveller, terms: dict[str, Any]) -> None:
    signal = make_published(expires_at=NOON + timedelta(minutes=5), **terms)

    async def go(watched: WatchedEngine) -> None:
        clock.move_to(NOON + timedelta(seconds=299))
        watched.tick(1.0850, 1.0852, NOON_MS + 299_000)
        await watched.settle()
        assert (await in_thread(lambda: told(signal)))[0] == "active"
        clock.move_to(NOON + timedelta(seconds=300))
        await watched.settle()

    run(go)
    assert told(signal) == ("closed", "expired", Decimal("1.0852" if terms else "1.0850"))


def test_on_a_closed_market_the_cancelled_wait_for_the_first_tick(clock: time_machine.Traveller) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0850, 1.0852, NOON_MS + 1_799_000)
        clock.move_to(NOON + timedelta(minutes=30))
        await in_thread(cancel, signal, reason="wrong symbol", by="alice")
        await watched.settle()
        assert (await in_thread(lambda: told(signal)))[0] == "active"
        clock.move_to(NOON + timedelta(minutes=90))
        await watched.settle()
        assert (await in_thread(lambda: told(signal)))[0] == "active", "the quote from before the pause"
        watched.tick(1.0830, 1.0832, NOON_MS + 5_400_000)
        await watched.settle()

    run(go)
    assert told(signal) == ("closed", "cancelled", Decimal("1.0830"))
    assert proof(signal).source == "first_after_gap"


def refilled(low: float, opened_ms: int = NOON_MS) -> HistoryMinute:
    return HistoryMinute(
        "EURUSD", PriceBar(opened_ms, 1.0850, 1.0860, low, 1.0850, 1.0, 1.0862, low + 0.0002), "bid"
    )


@pytest.mark.parametrize("basis", ["bid", "trades"])
def test_minute_out_of_a_venues_history_judges_unless_it_is_of_trades(basis: str) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.tick(1.0850, 1.0851, NOON_MS)
        minute = refilled(1.0805)
        minute.basis = basis
        watched.watcher.hear([minute])
        await watched.settle()

    run(go)
    assert told(signal)[1:] == (("stop_loss", Decimal("1.0805")) if basis == "bid" else ("", None))


def test_minute_from_before_a_signal_tells_nothing_of_how_far_its_price_went() -> None:
    async def go(watched: WatchedEngine) -> tuple[Signal, Signal]:
        older: Signal = await in_thread(make_published)
        watched.tick(1.0841, 1.0842, NOON_MS + 70_000)
        at = NOON + timedelta(seconds=70)
        younger: Signal = await in_thread(lambda: make_published(published_at=at, user=older.user))
        await watched.settle()
        watched.watcher.hear([refilled(1.0815)])
        watched.tick(1.0801, 1.0802, NOON_MS + 80_000)
        watched.tick(1.0901, 1.0902, NOON_MS + 90_000)
        await watched.settle()
        return older, younger

    older, younger = run(go)
    assert (proof(older).best, proof(younger).best) == (Decimal("1.0860"), Decimal("1.0841"))


def test_minute_that_comes_while_the_signals_are_still_being_read_is_not_missed() -> None:
    signal = make_published()
    run(after(), [refilled(1.0805)])
    assert told(signal)[1:] == ("stop_loss", Decimal("1.0805"))


def test_tick_that_cannot_be_judged_makes_it_read_all_anew(caplog: pytest.LogCaptureFixture) -> None:
    signal = make_published()

    async def go(watched: WatchedEngine) -> None:
        watched.watcher.hear([TickAccepted("EURUSD", "no price", 1.0, NOON_MS, 1.0, 1)])  # type: ignore[arg-type]
        await watched.settle()
        watched.tick(1.0790, 1.0791, NOON_MS + 1000)
        await watched.settle()

    run(go)
    assert "read again" in caplog.text
    assert told(signal)[1:] == ("stop_loss", Decimal("1.0790"))


def test_what_is_published_after_the_engine_ended_is_not_remembered() -> None:
    async def go(watched: WatchedEngine) -> WatchedEngine:
        return watched

    watched = run(go)
    watched.watcher.read_soon({"signal": str(make_published().pk)})
    assert watched.watcher.unread == set()
