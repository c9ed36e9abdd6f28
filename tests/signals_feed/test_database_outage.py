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

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
TRIES = 4


class NoAnnouncements(OperationalError):
    """A cause of its own: each is told once a minute."""


class NoClosing(OperationalError):
    """As above."""


def check(caplog: pytest.LogCaptureFixture, text: str, cause: str) -> None:
    first, last = [record.message for record in caplog.records if text in record.message]
    assert first == f"{text}: {cause}"
    assert last.startswith(f"{text}: over after ")


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
    await stream.stop()
    assert journal.reads > TRIES
    check(caplog, "Announced signals wait for the database", "away")


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
    await closer.end()
    assert tries > TRIES
    check(caplog, "Signals that were hit wait to be closed", "away")
