"""Signals do not outlive the prices that they were published on: a change of kind ends them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Event

import pytest
from django.db import connection, transaction

from core.database import ask
from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from instruments.saving import pass_on_again, withhold
from market.engine.engine import NEVER_MS
from market.models import LastQuote
from market.prices.records import Tick
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.models import Announcement, Hit, Signal
from signals_feed.publishing.actions import cancel, current_quote, publish
from signals_feed.rules import Quoted, SignalRefused, SignalTerms
from tests.factories import NOON, make_instrument
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S
from tests.signals_feed.published_signals import make_published, make_publisher

from .watched_engine import WatchedEngine, killed, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]
HOUR_MS = 3_600_000
BUY = SignalTerms("EURUSD", "buy", Decimal("1.0810"), Decimal("1.0900"), None)
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


async def reprice(watched: WatchedEngine, source: str) -> None:
    await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source=source)
    await in_thread(catalogue.load_now)
    await watched.runner.series.settle()


def test_an_active_signal_is_cancelled_at_the_last_quote_of_the_old_series() -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        watched.tick(1.0851, 1.0853, NOON_MS + 1000)
        await watched.settle()
        await reprice(watched, "replay")
        watched.engine.take("replay", [], NOON_MS + 2000)
        await watched.settle()

    run(act)
    signal.refresh_from_db()
    exit_ = signal.evidence.get(kind="exit")
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0851"))
    assert (exit_.bid, exit_.ask) == (Decimal("1.0851"), Decimal("1.0853"))
    assert exit_.at.timestamp() * 1000 == NOON_MS + 1000
    assert "replay" in signal.cancel_reason
    kinds = LedgerEntry.objects.filter(signal=signal.pk).order_by("position").values_list("kind", flat=True)
    assert list(kinds) == ["publish", "cancel", "close"]


def test_a_stop_that_was_hit_before_is_a_stop() -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        await watched.stall()
        watched.tick(1.0805, 1.0807, NOON_MS + 1000)
        watched.tick(1.0841, 1.0843, NOON_MS + 2000)
        await reprice(watched, "replay")

    run(act)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("stop_loss", Decimal("1.0805"))


def test_another_source_of_the_same_kind_leaves_it_active() -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        watched.tick(1.0851, 1.0853, NOON_MS + 1000)
        await watched.settle()
        await reprice(watched, "kraken")

    run(act)
    signal.refresh_from_db()
    assert signal.status == "active"


def test_a_change_while_nothing_ran_ends_it_at_the_stored_quote(instrument: Instrument) -> None:
    signal = make_published()
    quote = {"bid": Decimal("1.0833"), "ask": Decimal("1.0835"), "quoted_at": NOON}
    LastQuote.objects.create(instrument=instrument, simulated=True, source="demo", seq=7, **quote)
    run(WatchedEngine.settle)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0833"))
    assert Signal.objects.active().count() == 0


def quoted(after_ms: int) -> Quoted:
    return Quoted(Decimal("1.0851"), Decimal("1.0853"), NOON_MS + after_ms)


@pytest.mark.parametrize("ahead_ms", [0, 3_000])
def test_quote_from_before_the_change_publishes_nothing_after_it(ahead_ms: int) -> None:
    publisher = make_publisher()

    async def act(watched: WatchedEngine) -> None:
        tick = Tick("EURUSD", 1.0851, 1.0853, NOON_MS + ahead_ms, 1.0)
        assert watched.engine.accept(tick, NOON_MS) is None
        await watched.settle()
        await reprice(watched, "demo")

    run(act)
    with pytest.raises(SignalRefused, match="now come from another source"):
        publish(BUY, publisher, quoted(ahead_ms))
    assert publish(BUY, publisher, quoted(ahead_ms + 1)).status == "active"


def test_quote_by_a_clock_behind_ours_publishes_if_its_number_is_of_after_the_change() -> None:
    publisher = make_publisher()

    async def act(watched: WatchedEngine) -> None:
        watched.tick(1.0851, 1.0853, NOON_MS)
        await watched.settle()
        await reprice(watched, "demo")
        watched.engine.feed_state("demo").note_time(NEVER_MS, HOUR_MS)
        tick = Tick("EURUSD", 1.0851, 1.0853, NOON_MS + 1 - HOUR_MS, 1.0)
        assert watched.engine.accept(tick, NOON_MS + 1, "demo") is None
        watched.runner.publish()
        shown = current_quote("EURUSD")
        assert shown is not None
        quote = shown._replace(epoch=watched.runner.epoch())
        for before in (quote._replace(seq=1), quote._replace(epoch="another")):
            with pytest.raises(SignalRefused, match="now come from another source"):
                await in_thread(publish, BUY, publisher, before)
        assert (await in_thread(publish, BUY, publisher, quote)).status == "active"

    run(act)


def is_waited_for() -> bool:
    """SQLite has one writer, and shows nobody who waits for it."""
    if connection.vendor == "sqlite":
        return True
    return bool(ask(WAITING))


def test_signal_that_is_being_published_as_the_kind_changes_ends_with_the_others() -> None:
    publisher, is_published, may_end = make_publisher(), Event(), Event()

    def publish_slowly() -> None:
        try:
            with transaction.atomic():
                publish(BUY, publisher, quoted(1000))
                is_published.set()
                assert may_end.wait(PATIENCE_S)
        finally:
            connection.close()

    async def act(watched: WatchedEngine) -> None:
        watched.tick(1.0851, 1.0853, NOON_MS + 1000)
        await watched.settle()
        await watched.runner.writer.flush()
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source="demo")
        await in_thread(catalogue.load_now)
        with ThreadPoolExecutor(1) as threads:
            publishing = threads.submit(publish_slowly)
            assert await asyncio.to_thread(is_published.wait, PATIENCE_S)
            settling = asyncio.create_task(watched.runner.series.settle())
            while not settling.done() and not await in_thread(is_waited_for):  # noqa: ASYNC110 - the database is asked
                await asyncio.sleep(0.01)
            may_end.set()
            await asyncio.to_thread(publishing.result, PATIENCE_S)
            await settling
        # Should the database have been busy for longer than one waits for it.
        await watched.runner.series.settle()

    run(act)
    assert Signal.objects.get().close_reason == "cancelled"


# Prices that may not be handed on close no signal for as long as that is so: closing would publish them.
@pytest.fixture
def push(instrument: Instrument) -> WithheldSource:
    source = WithheldSource(name="push", why="Its terms.")
    withhold(source, by="test")
    catalogue.load_now()
    return source


async def hit(watched: WatchedEngine) -> None:
    """The second tick is beyond the stop; afterwards the price comes back."""
    for number, bid in enumerate((1.0850, 1.0790, 1.0850), 1):
        watched.tick(bid, bid + 0.0001, NOON_MS + number * 1000)
        await watched.settle()


async def hand_on(watched: WatchedEngine, push: WithheldSource) -> None:
    await in_thread(pass_on_again, [push], by="test")
    await watched.settle()


def published_of(signal: Signal) -> tuple[str, list[str], list[str], list[str]]:
    """Its status, and the kinds of evidence, announcements and entries that everybody gets."""
    signal.refresh_from_db()
    return (
        signal.status,
        sorted(signal.evidence.values_list("kind", flat=True)),
        sorted(Announcement.objects.filter(signal=signal).values_list("kind", flat=True)),
        sorted(LedgerEntry.objects.filter(signal=signal.pk).values_list("kind", flat=True)),
    )


ACTIVE = ("active", ["entry"], ["published"], ["publish"])
CLOSED = ("closed", ["entry", "exit"], ["closed", "published"], ["close", "publish"])


def assert_closed_by_its_tick(signal: Signal) -> None:
    assert published_of(signal) == CLOSED
    exit_ = signal.evidence.get(kind="exit")
    assert (signal.close_reason, signal.close_price) == ("stop_loss", Decimal("1.0790"))
    assert (exit_.bid, exit_.seq, exit_.at) == (Decimal("1.0790"), 2, NOON + timedelta(seconds=2))


def test_signal_that_was_hit_closes_by_that_tick_once_it_may_be_passed_on(push: WithheldSource) -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        await hit(watched)
        assert await in_thread(published_of, signal) == ACTIVE
        await hand_on(watched, push)

    run(act)
    assert_closed_by_its_tick(signal)


def test_it_waits_through_kills_and_restarts(push: WithheldSource) -> None:
    signal = make_published()

    async def hit_and_write(watched: WatchedEngine) -> None:
        await hit(watched)
        await watched.runner.writer.flush()

    killed(hit_and_write)
    assert Hit.objects.get().signal_id == signal.pk

    async def again(watched: WatchedEngine) -> None:
        # Beyond the stop once more, and further.
        watched.tick(1.0780, 1.0781, NOON_MS + 10_000)
        await watched.settle()
        assert await in_thread(published_of, signal) == ACTIVE
        await hand_on(watched, push)

    run(again)
    assert_closed_by_its_tick(signal)


def test_it_closes_if_it_may_be_passed_on_while_it_is_being_held_back(
    push: WithheldSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        loop, withheld = asyncio.get_running_loop(), catalogue.all()
        seen = iter([withheld])

        def all_now() -> list[object]:
            loop.call_soon_threadsafe(watched.watcher.close_held, {})
            return list(next(seen, ()))

        monkeypatch.setattr(catalogue, "all", all_now)
        await hit(watched)

    run(act)
    assert_closed_by_its_tick(signal)


def test_signal_that_staff_cancel_meanwhile_ends_when_it_may_be_passed_on(push: WithheldSource) -> None:
    signal = make_published()

    async def act(watched: WatchedEngine) -> None:
        await in_thread(cancel, signal, reason="Wrong symbol.", by="alice")
        watched.tick(1.0850, 1.0851, NOON_MS + 1000)
        await watched.settle()
        assert (await in_thread(published_of, signal))[:3] == ACTIVE[:3]
        await hand_on(watched, push)

    run(act)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0850"))


def test_signals_of_other_instruments_close(instrument: Instrument) -> None:
    LastQuote.objects.create(instrument=instrument, source="oanda")
    signal, other = make_published(), make_published(make_instrument("GBPUSD"))
    withhold(WithheldSource(name="oanda", why="Its terms."), by="test")
    catalogue.load_now()

    async def act(watched: WatchedEngine) -> None:
        await hit(watched)
        watched.tick(1.0790, 1.0791, NOON_MS + 4000, "GBPUSD")
        await watched.settle()

    run(act)
    assert (published_of(signal), published_of(other)) == (ACTIVE, CLOSED)


def test_change_of_kind_cancels_at_the_quote_of_the_publication(push: WithheldSource) -> None:
    signals = [make_published(), make_published(stop_loss=Decimal("1.0700"), user=None)]

    async def act(watched: WatchedEngine) -> None:
        # It hits one of them.
        await hit(watched)
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source="replay")
        await in_thread(catalogue.load_now)
        await watched.runner.series.settle()

    run(act)
    for signal in signals:
        signal.refresh_from_db()
        entry, exit_ = (signal.evidence.get(kind=kind) for kind in ("entry", "exit"))
        assert (signal.status, signal.close_reason) == ("closed", "cancelled")
        assert (exit_.bid, exit_.ask, exit_.at) == (entry.bid, entry.ask, entry.at)
        assert exit_.best == exit_.worst == signal.close_price == Decimal("1.0841")
        assert "may not be passed on" in signal.cancel_reason
