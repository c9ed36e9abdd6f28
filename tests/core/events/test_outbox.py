from __future__ import annotations

import pytest
from django.db import connection, transaction

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

pytestmark = pytest.mark.usefixtures("transactional_db")


def publish_and_fail() -> None:
    with transaction.atomic():
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=1)
        raise ZeroDivisionError


def test_publishing_outside_a_transaction_raises() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED)
    assert not ControlEvent.objects.exists()


def test_fact_rolled_back_takes_its_event_along() -> None:
    with pytest.raises(ZeroDivisionError):
        publish_and_fail()
    assert not ControlEvent.objects.exists()


def test_readers_are_nudged_once_a_transaction() -> None:
    with transaction.atomic():
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=1)
        with transaction.atomic():
            ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=2)
        assert len(connection.run_on_commit) == 1


def test_readers_are_nudged_though_a_savepoint_was_rolled_back() -> None:
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError):
            publish_and_fail()
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, number=2)
        assert len(connection.run_on_commit) == 1
