"""By rules 2 the engine fills a signal after it was asked to: at which tick, and what follows from it."""

from __future__ import annotations

import pytest

from core.threads import in_thread
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import make_waiting

from .watched_engine import WatchedEngine, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]


def told(signal: Signal) -> list[str]:
    entries = LedgerEntry.objects.filter(signal=signal.pk).order_by("position")
    return [f"{each.kind} {each.part}".strip() for each in entries]


def test_a_signal_is_armed_then_filled_and_then_stopped() -> None:
    async def act(watched: WatchedEngine) -> Signal:
        watched.tick(1.0841, 1.0842, NOON_MS)
        signal: Signal = await in_thread(make_waiting)
        await watched.settle()
        watched.tick(1.0850, 1.0851, NOON_MS + 999)
        watched.tick(1.0844, 1.0845, NOON_MS + 1_000)
        watched.tick(1.0805, 1.0806, NOON_MS + 2_000)
        await watched.settle()
        return signal

    signal = run(act)
    assert told(signal) == ["publish", "arm fill:1", "fill", "close"]
    signal.refresh_from_db()
    assert (str(signal.fill_price), str(signal.close_price)) == ("1.08450000", "1.08050000")
    assert verify().fault == ""
