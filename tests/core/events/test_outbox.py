from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection, transaction

from core.background import cancel_and_wait
from core.events.kinds import EventKind
from core.events.outbox import ChannelListener, ControlEvent, EventMessage, send_to_processes
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services, pytest.mark.pooled]


def publish_and_fail() -> None:
    with transaction.atomic():
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=1)
        raise ZeroDivisionError


def test_without_a_whole_transaction_there_is_no_event() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED)
    with pytest.raises(ZeroDivisionError):
        publish_and_fail()
    assert not ControlEvent.objects.exists()


def test_readers_are_nudged_once_a_transaction_also_after_a_savepoint_was_rolled_back() -> None:
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError):
            publish_and_fail()
        for number in (1, 2):
            with transaction.atomic():
                ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=number)
        assert len(connection.run_on_commit) == 1


async def test_installations_in_two_databases_of_one_redis_do_not_hear_each_other(
    shared: str, settings: Any
) -> None:
    lines = [Line(shared), Line(shared[:-1] + "1")]
    listening = [asyncio.create_task(line.listener.listen(line.url)) for line in lines]
    await asyncio.wait_for(asyncio.gather(*(line.hears.wait() for line in lines)), PATIENCE_S)
    for position, line in enumerate(lines, 1):
        line.hears.clear()
        settings.REDIS_URL = line.url
        send_to_processes(EventMessage(position, EventKind.INSTRUMENTS_CHANGED))
    await asyncio.wait_for(asyncio.gather(*(line.hears.wait() for line in lines)), PATIENCE_S)
    await cancel_and_wait(*listening)
    # Each heard a reason to look as soon as it was connected.
    assert [line.positions for line in lines] == [[0, 1], [0, 2]]


class Line:
    """What an installation in this database hears."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.positions: list[int] = []
        self.hears = asyncio.Event()
        self.listener = ChannelListener(self._hear)

    def _hear(self, told: EventMessage) -> None:
        self.positions.append(told.position)
        self.hears.set()
