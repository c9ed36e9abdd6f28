"""What is known while a handler takes its time, or whoever asked went away."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from core.contract.errors import Overloaded
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.patience import PATIENCE_S, until

from .test_event_feed import Listener, publish

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]


@pytest.fixture
async def feed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventFeed]:
    monkeypatch.setattr("core.events.event_feed.POLL_S", 0.05)
    monkeypatch.setattr("core.events.event_feed.HANDLE_WITHIN_S", 3600)
    monkeypatch.setattr(EventFeed, "STALE_AFTER_S", 0.5)
    running = EventFeed()
    await running.start()
    yield running
    await running.stop()


class Slow:
    """A handler that ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, facts: dict[str, Any]) -> None:
        self.begun.set()
        await self.go.wait()


class Frozen:
    """A database that does not answer until it is thawed."""

    def __init__(self, feed: EventFeed, monkeypatch: pytest.MonkeyPatch) -> None:
        self._thawed, self._next = threading.Event(), feed.next_events
        monkeypatch.setattr(feed, "next_events", self.ask)

    def ask(self) -> list[ControlEvent]:
        self._thawed.wait(PATIENCE_S)
        return self._next()

    def thaw(self) -> None:
        self._thawed.set()


async def test_database_that_freezes_while_a_handler_is_busy_is_noticed(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    feed.on(EventKind.INSTRUMENTS_CHANGED, slow)
    await publish(1)
    await slow.begun.wait()
    frozen = Frozen(feed, monkeypatch)
    feed.read_at -= 2 * feed.STALE_AFTER_S
    try:
        await until(lambda: feed.may_be_trusted)
        assert not feed.is_current
        await until(lambda: feed.is_database_away)
    finally:
        frozen.thaw()
        slow.go.set()


@pytest.mark.parametrize("kind", [EventKind.KEY_REVOKED, EventKind.TIER_CHANGED])
async def test_what_has_to_hold_in_time_waits_for_no_slow_handler_of_something_else(
    feed: EventFeed, kind: EventKind
) -> None:
    slow, revoked = Slow(), Listener()
    feed.on(EventKind.INSTRUMENTS_CHANGED, slow)
    feed.on(kind, revoked)
    await publish(1, kind=EventKind.INSTRUMENTS_CHANGED)
    await slow.begun.wait()
    await publish(2, kind=kind)
    assert await revoked.hears(1) == [2]
    slow.go.set()
    await feed.read()
    await feed.read()
    assert revoked.heard == [2]


@pytest.mark.parametrize(
    ("kind", "ends_access"), [(EventKind.TIER_CHANGED, False), (EventKind.ACCOUNT_CHANGED, True)]
)
async def test_keys_stay_known_beside_a_slow_handler_of_what_ends_nobodys_access_alone(
    feed: EventFeed, kind: EventKind, ends_access: bool
) -> None:
    slow, early = Slow(), Listener()
    feed.on(kind, slow)
    feed.on(EventKind.KEY_REVOKED, early)
    await publish(1, kind=kind)
    await slow.begun.wait()
    await publish(2, kind=EventKind.KEY_REVOKED)
    assert await early.hears(1) == [2]
    feed.read_at -= 2 * feed.STALE_AFTER_S
    # A read that began before the first event may still count for a while.
    await until(lambda: feed.is_current is not ends_access)
    slow.go.set()


async def test_question_that_its_asker_left_still_counts_as_unanswered(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.events.event_feed.SURE_WITHIN_S", 0.05)
    monkeypatch.setattr("core.events.event_feed.POLL_S", 3600)
    await feed.read()
    frozen, asked_at = Frozen(feed, monkeypatch), feed.own_now()
    with contextlib.suppress(Overloaded):
        await feed.make_sure()
    left_at = feed.own_now()
    try:
        assert feed.asked_at is not None
        assert asked_at <= feed.asked_at <= left_at
    finally:
        frozen.thaw()
    await until(lambda: feed.asked_at is None)


async def test_standstill_of_our_own_is_no_silence_of_the_database(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "STALE_AFTER_S", PATIENCE_S)
    frozen = Frozen(feed, monkeypatch)
    await until(lambda: feed.asked_at is not None)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * PATIENCE_S)
    monkeypatch.setattr("core.events.trust.time", later)
    monkeypatch.setattr("core.events.event_feed.time", later)
    try:
        assert not feed.is_current
        assert not feed.is_database_away
    finally:
        frozen.thaw()
    await feed.make_sure()
    await until(lambda: feed.is_current)
