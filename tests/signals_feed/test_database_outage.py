"""While the database is away, what waits for it is tried again and again and told once."""

from __future__ import annotations

from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import OperationalError

from signals_feed.closing import Closer, Closing
from signals_feed.stream import SignalStream
from tests.patience import until
from tests.signals_feed.announcing import Journal, heard, join, make_announced

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
