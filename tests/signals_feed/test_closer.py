"""While the database is away, what waits for it is tried again and again and told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from signals_feed.closing import Closer, Closing, close_signal
from signals_feed.exits import STOP, STOP_LOSS
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.models import Signal
from signals_feed.stream import SignalStream
from tests.databases.queries import around_statements
from tests.factories import NOON
from tests.market.ticking import NOON_MS
from tests.patience import until
from tests.signals_feed.announcing import Journal, heard, join, make_announced
from tests.signals_feed.published_signals import make_published

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("transactional_db"),
    pytest.mark.services,
]
TRIES = 4


class NoAnnouncements(OperationalError):
    """A cause of its own: each is told once a minute."""


class NoClosing(OperationalError):
    """As above."""


async def check(caplog: pytest.LogCaptureFixture, text: str) -> None:
    def told() -> list[str]:
        return [each.message.partition(" after ")[0] for each in caplog.records if text in each.message]

    await until(lambda: f"{text}: over" in told())
    assert told() == [f"{text}: away", f"{text}: over"]


async def test_announcements_that_wait_are_told_once_and_so_is_their_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = Journal([make_announced(1)])
    journal.faults = [NoAnnouncements("away") for _ in range(TRIES)]
    stream = SignalStream(journal.read)
    await stream.start()
    _, line = join(stream, "*")
    stream.wake({})
    await until(lambda: stream.position == 1)
    stream.hub.flush()
    assert heard(line) == [1]
    assert journal.reads > TRIES
    await check(caplog, "Announced signals wait for the database")
    await stream.stop()


async def test_signals_that_wait_to_be_closed_are_told_once_and_so_is_their_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries = 0

    def hold() -> None:
        nonlocal tries
        tries += 1
        if tries <= TRIES:
            raise NoClosing("away")

    closer = Closer(hold)
    await closer.loop.start()
    closer.add(Closing(uuid4(), Decimal(1), "stop_loss", 0, "tick", "tick", {}))
    await until(lambda: not closer.pending)
    assert tries > TRIES
    await check(caplog, "Signals that were hit wait to be closed")
    await closer.end()


# What waits to be closed, and in which way.
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


@pytest.mark.usefixtures("clock")
def test_first_closing_of_a_signal_counts() -> None:
    signal = make_published()
    close(closing(signal, "1.08"), closing(signal, "1.07"))
    assert prices() == {Decimal("1.08")}


@pytest.mark.usefixtures("clock")
def test_signal_that_somebody_closes_after_it_was_read_is_left_alone() -> None:
    signal = make_published()
    faster = [closing(signal, "1.07")]

    def close_before(sql: str, execute: Callable[[], Any]) -> Any:
        if sql.startswith("UPDATE") and faster:
            assert close_signal(faster.pop())
        return execute()

    with around_statements(close_before):
        assert not close_signal(closing(signal, "1.08"))
    assert prices() == {Decimal("1.07")}
    assert LedgerEntry.objects.count() == 2


@pytest.mark.usefixtures("clock")
def test_signal_that_cannot_be_closed_holds_up_no_other() -> None:
    bad = make_published()
    good = make_published(user=bad.user)
    closer = close(closing(bad, "1e30"), closing(good, "1.08"))
    assert prices() == {None, Decimal("1.08")}
    assert (set(closer.refused), closer.waiting()) == ({bad.pk}, list(closer.refused.values()))
