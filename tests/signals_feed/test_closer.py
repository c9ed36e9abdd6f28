"""What waits to be closed, and in which way."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from signals_feed.closing import Closer, Closing
from signals_feed.models import Signal
from signals_feed.rules import STOP, STOP_LOSS
from tests.factories import NOON
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import make_published

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock")]


def closing(signal: Signal, price: str) -> Closing:
    shown = {"at": NOON, "bid": Decimal("1.08"), "ask": Decimal("1.0801"), "epoch": "", "seq": 1}
    return Closing(signal.pk, Decimal(price), STOP_LOSS, NOON_MS, STOP, "tick", shown)


def close(*closings: Closing) -> Closer:
    async def work() -> Closer:
        closer = Closer(lambda: None)
        for each in closings:
            closer.add(each)
        await closer.work_off()
        return closer

    return asyncio.run(work())


def prices() -> set[Decimal | None]:
    return set(Signal.objects.values_list("close_price", flat=True))


def test_first_closing_of_a_signal_counts() -> None:
    signal = make_published()
    close(closing(signal, "1.08"), closing(signal, "1.07"))
    assert prices() == {Decimal("1.08")}


def test_signal_that_cannot_be_closed_holds_up_no_other() -> None:
    bad = make_published()
    good = make_published(user=bad.user)
    closer = close(closing(bad, "1e30"), closing(good, "1.08"))
    assert prices() == {None, Decimal("1.08")}
    assert (set(closer.refused), closer.waiting()) == ({bad.pk}, list(closer.refused.values()))
