"""What is written with the engine's checkpoint: up to when minutes were judged, and what was hit."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from core.threads import in_thread
from signals_feed.closing import Closing
from signals_feed.judging.watcher import STORED_AFTER_MS, write_notes
from signals_feed.levels import RECENT
from signals_feed.models import Hit, WatchMark
from signals_feed.rules import Quoted
from tests.factories import NOON
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import close_at, make_published

from .watched_engine import WatchedEngine, run

pytestmark = pytest.mark.usefixtures("instrument")


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
    write_notes([hit], 0)
    assert not Hit.objects.exists()
