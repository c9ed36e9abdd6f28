"""Control events on PostgreSQL: a reader by position never passes one that is still to be committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import transaction

from accounts.keys.issuing import issue_key, roll_key
from accounts.models import Account, ApiKey
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.factories import make_account
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation

Publish = Callable[[str], Any]
pytestmark = pytest.mark.row("control events", "no event is skipped")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


class Reader:
    """Reads as every process does: what stands after the last position that it saw."""

    def __init__(self) -> None:
        newest = ControlEvent.objects.newest()
        self.position = newest.position if newest else 0
        self.heard: list[str] = []

    def read(self) -> list[str]:
        for event in ControlEvent.objects.filter(position__gt=self.position).order_by("position"):
            self.position = event.position
            self.heard.append(event.by)
        return self.heard


def is_somebody_waiting(installation: Installation) -> bool:
    """Whether a transaction waits for a lock that another holds."""
    with psycopg.connect(installation.database_url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        (waiting,) = connection.execute(query).fetchone() or (0,)
        return bool(waiting)


def wait_until_blocked(installation: Installation, done: Future[Any]) -> bool:
    """True once it waits for a lock, False if it ended without."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if done.done():
            return False
        if is_somebody_waiting(installation):
            return True
        time.sleep(0.02)
    raise AssertionError("It neither ended nor waits.")


def publish_by(writer: str) -> None:
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by=writer)


def hear_two_writers(installation: Installation, threads: ThreadPoolExecutor, publish: Publish) -> list[str]:
    """The first writes first and commits last; what a reader hears who looks all the while."""
    has_written, may_commit = threading.Event(), threading.Event()

    def first() -> None:
        with installation.orm(), transaction.atomic():
            publish("first")
            has_written.set()
            assert may_commit.wait(PATIENCE_S)

    def second() -> None:
        assert has_written.wait(PATIENCE_S)
        with installation.orm(), transaction.atomic():
            publish("second")

    with installation.orm():
        reader = Reader()
        writers = [threads.submit(first), threads.submit(second)]
        wait_until_blocked(installation, writers[1])
        reader.read()
        may_commit.set()
        for writer in writers:
            writer.result(PATIENCE_S)
        return reader.read()


def test_the_event_of_the_last_writer_to_commit_is_read_too(
    scaled: Installation, threads: ThreadPoolExecutor
) -> None:
    assert hear_two_writers(scaled, threads, publish_by) == ["first", "second"]


def test_control_without_the_lock_an_event_is_skipped(
    scaled: Installation, threads: ThreadPoolExecutor
) -> None:
    def publish_without_lock(by: str) -> None:
        ControlEvent.objects.create(kind=EventKind.INSTRUMENTS_CHANGED, by=by)

    assert hear_two_writers(scaled, threads, publish_without_lock) == ["second"]


def test_events_of_many_writers_are_read_once_and_in_order(
    scaled: Installation, threads: ThreadPoolExecutor, tell: Tell
) -> None:
    writers, each = 6, 40

    def write(writer: int) -> None:
        with scaled.orm():
            for number in range(each):
                with transaction.atomic():
                    publish_by(f"{writer}:{number}")

    with scaled.orm():
        reader = Reader()
        running = [threads.submit(write, writer) for writer in range(writers)]
        while not all(done.done() for done in running):
            reader.read()
        for done in running:
            done.result(PATIENCE_S)
        heard = reader.read()
    tell(f"{len(heard)} of {writers * each} events read")
    assert sorted(heard) == sorted(
        f"{writer}:{number}" for writer in range(writers) for number in range(each)
    )
    for writer in range(writers):
        assert [k for k in heard if k.startswith(f"{writer}:")] == [f"{writer}:{n}" for n in range(each)]


def test_rolling_and_issuing_keys_simultaneously_does_not_deadlock(
    scaled: Installation, threads: ThreadPoolExecutor
) -> None:
    with scaled.orm():
        account = make_account()
        key, _ = issue_key(account, "old", by="test")

    def roll() -> None:
        with scaled.orm():
            roll_key(ApiKey.objects.get(pk=key.pk), overlap_hours=0, by="test")

    with scaled.orm(), transaction.atomic():
        # As issuing does: the account first, the event last.
        Account.objects.select_for_update().get(pk=account.pk)
        rolling = threads.submit(roll)
        assert wait_until_blocked(scaled, rolling)
        ControlEvent.objects.publish(EventKind.KEY_ISSUED)
    rolling.result(PATIENCE_S)
