"""Signals do not outlive the prices that they were published on: a change of kind ends them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from accounts.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.models import LastQuote
from signals_feed.models import LedgerEntry, Signal
from tests.factories import NOON, make_instrument
from tests.market.ticking import NOON_MS
from tests.signals_feed.acting import make_published
from tests.signals_feed.engine_room import EngineRoom, run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock", "own_market")]


@pytest.fixture(autouse=True)
def instrument(transactional_db: None) -> Instrument:
    """Real at first: without DEMO it is priced by whoever pushes."""
    return make_instrument()


async def reprice(room: EngineRoom, source: str) -> None:
    await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source=source)
    await in_thread(catalogue.load_now)
    await room.runner.settle_kinds()


async def tick_then_replay(room: EngineRoom) -> None:
    room.tick(1.0851, 1.0853, NOON_MS + 1000)
    await room.settle()
    await reprice(room, "replay")


def test_an_active_signal_is_cancelled_at_the_last_quote_of_the_old_series() -> None:
    signal = make_published()

    run(tick_then_replay)

    signal.refresh_from_db()
    exit_ = signal.evidence.get(kind="exit")
    assert (signal.status, signal.close_reason) == ("closed", "cancelled")
    assert signal.close_price == Decimal("1.0851")
    assert (exit_.bid, exit_.ask, exit_.at.timestamp() * 1000) == (
        Decimal("1.0851"),
        Decimal("1.0853"),
        NOON_MS + 1000,
    )
    assert "replay" in signal.cancel_reason


def test_the_ledger_holds_the_cancellation_and_its_chain() -> None:
    signal = make_published()

    run(tick_then_replay)

    kinds = LedgerEntry.objects.filter(signal=signal.pk).order_by("position").values_list("kind", flat=True)
    assert list(kinds)[-2:] == ["cancel", "close"]


def test_no_price_of_the_new_series_reaches_it() -> None:
    signal = make_published()

    async def act(room: EngineRoom) -> None:
        await tick_then_replay(room)
        room.engine.take("replay", [], NOON_MS + 2000)
        await room.settle()

    run(act)

    signal.refresh_from_db()
    assert signal.close_price == Decimal("1.0851")


def test_a_stop_that_was_hit_before_is_a_stop() -> None:
    signal = make_published()

    async def act(room: EngineRoom) -> None:
        await room.stall()
        room.tick(1.0805, 1.0807, NOON_MS + 1000)
        room.tick(1.0841, 1.0843, NOON_MS + 2000)
        await reprice(room, "replay")

    run(act)

    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("stop_loss", Decimal("1.0805"))


def test_another_source_of_the_same_kind_leaves_it_active() -> None:
    signal = make_published()

    async def act(room: EngineRoom) -> None:
        room.tick(1.0851, 1.0853, NOON_MS + 1000)
        await room.settle()
        await reprice(room, "kraken")

    run(act)

    signal.refresh_from_db()
    assert signal.status == "active"


def test_a_change_while_nothing_ran_ends_it_at_the_stored_quote(instrument: Instrument) -> None:
    signal = make_published()
    quote = {"bid": Decimal("1.0833"), "ask": Decimal("1.0835"), "quoted_at": NOON}
    LastQuote.objects.create(instrument=instrument, simulated=True, source="demo", seq=7, **quote)

    async def act(room: EngineRoom) -> None:
        await room.settle()

    run(act)

    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("cancelled", Decimal("1.0833"))
    assert Signal.objects.active().count() == 0
