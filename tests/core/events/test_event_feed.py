from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from core.background import cancel_and_wait
from core.contract.errors import Overloaded
from core.events import event_feed
from core.events.event_feed import BATCH, EventFeed, Handler
from core.events.kinds import EventKind
from core.events.outbox import ChannelListener, ControlEvent, EventMessage, readers, send_to_processes
from core.redis.urls import channel_layer
from core.threads import in_reserved_thread, in_thread
from tests.patience import PATIENCE_S, until

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services, pytest.mark.pooled]


class Listener:
    """A handler that notes what it hears, and fails first with the errors it was given."""

    def __init__(self, *errors: Exception) -> None:
        self.heard: list[int] = []
        self.errors = list(errors)
        self._more = asyncio.Event()

    def __call__(self, facts: dict[str, Any]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.heard.append(facts["number"])
        self._more.set()

    async def hears(self, count: int) -> list[int]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.heard) < count:
                self._more.clear()
                await self._more.wait()
        return self.heard


@pytest.fixture
async def feed() -> AsyncIterator[EventFeed]:
    running = EventFeed()
    await running.start()
    yield running
    await running.stop()


def publish_now(*numbers: int, kind: EventKind = EventKind.INSTRUMENTS_CHANGED) -> None:
    with transaction.atomic():
        for number in numbers:
            ControlEvent.objects.publish(kind, by="test", number=number)


async def publish(*numbers: int, kind: EventKind = EventKind.INSTRUMENTS_CHANGED) -> None:
    await in_thread(publish_now, *numbers, kind=kind)


async def test_events_are_heard_once_and_in_order_by_functions_and_coroutines(feed: EventFeed) -> None:
    listener, other = Listener(), Listener()

    async def handle(facts: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        other(facts)

    feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    feed.on(EventKind.INSTRUMENTS_CHANGED, handle)
    await publish(1, 2)
    with pytest.raises(ZeroDivisionError):
        await in_thread(publish_and_fail)
    await publish(9, kind=EventKind.CANDLES_IMPORTED)
    assert await other.hears(2) == [1, 2]
    await cancel_and_wait(*feed.tasks)
    more = range(3, BATCH + 6)
    await publish(*more)
    for _ in range(2):
        await feed.read()
        assert listener.heard == other.heard == [1, 2, *more]


async def test_feed_starts_after_what_was_there_before() -> None:
    await publish(1)
    feed, listener = EventFeed(), Listener()
    feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    await feed.start()
    await publish(2)
    assert await listener.hears(1) == [2]
    await feed.stop()


async def test_handler_that_raises_deafens_nobody(feed: EventFeed, caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = Listener(KeyError("a bug")), Listener()
    feed.on(EventKind.INSTRUMENTS_CHANGED, broken)
    feed.on(EventKind.INSTRUMENTS_CHANGED, sound)
    await publish(1, 2)
    assert await sound.hears(2) == [1, 2]
    assert broken.heard == [2]
    assert "A handler of" in caplog.text


async def outrun(feed: EventFeed, slow: Handler) -> Listener:
    """Another event is heard while one waits for this handler; returns the one after it."""
    after, other = Listener(), Listener()
    for handler in (slow, after):
        feed.on(EventKind.INSTRUMENTS_CHANGED, handler)
    feed.on(EventKind.CANDLES_IMPORTED, other)
    await publish(1)
    await publish(2, kind=EventKind.CANDLES_IMPORTED)
    assert await other.hears(1) == [2]
    return after


async def test_handler_that_hangs_deafens_nobody_for_long(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang(facts: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(event_feed, "HANDLE_WITHIN_S", 0.05)
    monkeypatch.setattr(event_feed, "GIVE_UP_S", 0.5)
    after = await outrun(feed, hang)
    assert await after.hears(1) == [1]
    assert f"A handler of {EventKind.INSTRUMENTS_CHANGED} failed" in caplog.text


async def test_handler_that_takes_long_is_not_cut_short(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, faults, slow = asyncio.Event(), [OperationalError("away")], Listener()

    async def take_long(facts: dict[str, Any]) -> None:
        await go.wait()
        if faults:
            raise faults.pop()
        slow(facts)

    monkeypatch.setattr(event_feed, "HANDLE_WITHIN_S", 0.05)
    monkeypatch.setattr(event_feed, "RETRY_S", 0.01)
    after = await outrun(feed, take_long)
    assert (slow.heard, after.heard) == ([], [])
    go.set()
    assert await after.hears(1) == [1]
    assert (slow.heard, faults) == ([1], [])


async def test_who_waits_no_longer_leaves_the_handler_at_work(feed: EventFeed) -> None:
    go, begun = asyncio.Event(), []

    async def take_long(facts: dict[str, Any]) -> None:
        begun.append(facts["number"])
        await go.wait()
        listener(facts)

    listener = Listener()
    feed.on(EventKind.INSTRUMENTS_CHANGED, take_long)
    await feed.stop()
    await feed.start()
    await cancel_and_wait(*feed.tasks)
    await publish(1)
    for _ in range(3):
        reading = asyncio.create_task(feed.read())
        await until(lambda: begun)
        # One thread reads the outbox: what is asked behind a read comes when it has been handed on.
        for _ in range(3):
            await in_reserved_thread(int)
        await cancel_and_wait(reading)
    go.set()
    await feed.read()
    assert (begun, listener.heard) == ([1], [1])


@pytest.mark.parametrize("is_filled_again", [True, False])
async def test_events_whose_positions_went_back_are_heard(
    feed: EventFeed, caplog: pytest.LogCaptureFixture, *, is_filled_again: bool
) -> None:
    listener = Listener()
    asked_anew: list[dict[str, Any]] = []
    feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    feed.on(EventKind.BEGAN_ANEW, asked_anew.append)
    await publish(1, 2, 3)
    await listener.hears(3)
    await in_thread(go_back, 2 if is_filled_again else 0)
    await until(lambda: len(asked_anew) == 1)
    await publish(6)
    assert (await listener.hears(4))[3:] == [6]
    await feed.read()
    assert asked_anew == [{}]
    assert "The database has other control events than before" in caplog.text


async def test_control_a_database_that_goes_on_is_asked_for_nothing_anew(feed: EventFeed) -> None:
    listener = Listener()
    asked_anew: list[dict[str, Any]] = []
    feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    feed.on(EventKind.BEGAN_ANEW, asked_anew.append)
    for number in range(5):
        await publish(number)
        await feed.read()
    await in_thread(ControlEvent.objects.filter(position__lt=feed.position).delete)
    await feed.read()
    assert (listener.heard, asked_anew) == ([0, 1, 2, 3, 4], [])


def go_back(refilled: int) -> None:
    """The last events are gone, and so many others stand in their places."""
    with transaction.atomic():
        lost = list(ControlEvent.objects.order_by("-position")[:2])
        ControlEvent.objects.filter(pk__in=[event.pk for event in lost]).delete()
        for event in lost[:refilled]:
            ControlEvent.objects.create(
                position=event.position, kind=EventKind.INSTRUMENTS_CHANGED, facts={"number": 5}
            )
        # Where both databases give the next position.
        ControlEvent.objects.create(position=lost[0].position + 1, kind=EventKind.CANDLES_IMPORTED).delete()


@pytest.mark.parametrize("fault", [OperationalError("the database is away"), Overloaded(retry_after=1)])
async def test_fault_that_passes_is_tried_again_by_its_handler_alone(
    feed: EventFeed, fault: Exception
) -> None:
    before, unlucky, after = Listener(), Listener(fault, fault), Listener()
    for listener in (before, unlucky, after):
        feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    await publish(1, 2)
    assert await after.hears(2) == [1, 2]
    assert (before.heard, unlucky.heard) == ([1, 2], [1, 2])


async def test_requests_that_fill_the_queue_do_not_delay_an_event(feed: EventFeed) -> None:
    def publish_and_leave() -> None:
        publish_now(1)
        connection.close()

    listener, go = Listener(), threading.Event()
    feed.on(EventKind.INSTRUMENTS_CHANGED, listener)
    busy = [asyncio.create_task(in_thread(go.wait, PATIENCE_S)) for _ in range(100)]
    try:
        await asyncio.sleep(0)
        publisher = threading.Thread(target=publish_and_leave)
        publisher.start()
        assert await listener.hears(1) == [1]
        await until(lambda: feed.is_current)
    finally:
        go.set()
        await asyncio.gather(*busy)
        publisher.join()


async def test_what_is_known_is_trusted_while_the_database_owes_an_answer(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, asked = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> list[ControlEvent]:
        loop.call_soon_threadsafe(asked.set)
        go.wait(PATIENCE_S)
        return []

    monkeypatch.setattr(feed, "next_events", wait)
    feed.look_now()
    await asked.wait()
    feed.read_at -= 2 * feed.STALE_AFTER_S
    trusted = feed.is_current, feed.may_be_trusted
    feed.read_at -= feed.TRUSTED_FOR_S
    is_trusted_for_ever = feed.may_be_trusted
    go.set()
    assert (trusted, is_trusted_for_ever) == ((False, True), False)


async def test_what_is_committed_during_a_read_is_not_known_by_it(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_at: list[float] = []
    ask = feed.next_events

    def noted() -> list[ControlEvent]:
        asked_at.append(time.monotonic())
        return ask()

    await cancel_and_wait(*feed.tasks)
    monkeypatch.setattr(feed, "next_events", noted)
    await feed.read()
    assert feed.read_at <= asked_at[-1]


async def test_stopped_feed_is_not_current_and_stops_at_once_also_when_it_was_just_woken(
    feed: EventFeed,
) -> None:
    await until(lambda: feed.is_current)
    for _ in range(20):
        feed.look_now()
        await asyncio.sleep(0)
        await asyncio.wait_for(feed.stop(), PATIENCE_S)
        assert not feed.is_current
        await feed.start()


async def send_until(listener: Listener, message: EventMessage) -> None:
    """What is sent before somebody listens is lost."""

    def is_heard() -> bool:
        send_to_processes(message)
        return bool(listener.heard)

    await until(is_heard)


async def test_an_event_of_another_database_takes_the_place_of_none(shared: str) -> None:
    feed, foreign, ours = EventFeed(), Listener(), Listener()
    feed.on(EventKind.CANDLES_IMPORTED, foreign)
    feed.on(EventKind.INSTRUMENTS_CHANGED, ours)
    await feed.start()
    newest = await in_thread(ControlEvent.objects.newest)
    place = newest.position + 1 if newest else 1
    await send_until(foreign, EventMessage(place, EventKind.CANDLES_IMPORTED, {"number": 1}))
    await publish(2)
    heard = await ours.hears(1)
    await feed.stop()
    assert heard == [2]


@pytest.fixture(params=["in memory", "redis"])
def layer(request: pytest.FixtureRequest, settings: Any) -> None:
    url = "" if request.param == "in memory" else request.getfixturevalue("shared")
    settings.CHANNEL_LAYERS = {"default": channel_layer(url, settings.REDIS_PREFIX, within_s=PATIENCE_S)}


@pytest.mark.usefixtures("layer")
async def test_feed_of_another_process_is_woken_over_the_channel_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wait in ("POLL_S", "RETRY_S"):
        monkeypatch.setattr(f"core.events.event_feed.{wait}", 3600.0)
    monkeypatch.setattr("core.events.outbox.send_to_processes", lambda event: None)
    here, there, listener = EventFeed(), EventFeed(), Listener()
    there.on(EventKind.INSTRUMENTS_CHANGED, listener)
    for each in (here, there):
        await each.start()
        await until(lambda: each.wake_ups.channel)  # noqa: B023
    readers.discard(there.look_now)
    for number in (1, 2):
        await publish(number)
        heard = await listener.hears(number)
    for each in (here, there):
        await each.stop()
    assert heard == [1, 2]


# What is known while a handler takes its time, or whoever asked went away.
@pytest.fixture
async def quick(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventFeed]:
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

    def __init__(self, quick: EventFeed, monkeypatch: pytest.MonkeyPatch) -> None:
        self._thawed, self._next = threading.Event(), quick.next_events
        monkeypatch.setattr(quick, "next_events", self.ask)

    def ask(self) -> list[ControlEvent]:
        self._thawed.wait(PATIENCE_S)
        return self._next()

    def thaw(self) -> None:
        self._thawed.set()


async def test_database_that_freezes_while_a_handler_is_busy_is_noticed(
    quick: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    quick.on(EventKind.INSTRUMENTS_CHANGED, slow)
    await publish(1)
    await slow.begun.wait()
    frozen = Frozen(quick, monkeypatch)
    quick.read_at -= 2 * quick.STALE_AFTER_S
    try:
        await until(lambda: quick.may_be_trusted)
        assert not quick.is_current
        await until(lambda: quick.is_database_away)
    finally:
        frozen.thaw()
        slow.go.set()


@pytest.mark.parametrize("kind", [EventKind.KEY_REVOKED, EventKind.TIER_CHANGED])
async def test_what_has_to_hold_in_time_waits_for_no_slow_handler_of_something_else(
    quick: EventFeed, kind: EventKind
) -> None:
    slow, revoked = Slow(), Listener()
    quick.on(EventKind.INSTRUMENTS_CHANGED, slow)
    quick.on(kind, revoked)
    await publish(1, kind=EventKind.INSTRUMENTS_CHANGED)
    await slow.begun.wait()
    await publish(2, kind=kind)
    assert await revoked.hears(1) == [2]
    slow.go.set()
    await quick.read()
    await quick.read()
    assert revoked.heard == [2]


@pytest.mark.parametrize("is_read_first", [True, False])
async def test_an_event_that_comes_both_ways_while_it_is_being_handled_is_heard_once(
    shared: str, quick: EventFeed, is_read_first: bool
) -> None:
    heard, slow, later, first_of_all = Listener(), Slow(), Listener(), Listener()
    for handler in (heard, slow):
        quick.on(EventKind.INSTRUMENTS_CHANGED, handler)
    for kind in (EventKind.TIER_CHANGED, EventKind.KEY_REVOKED):
        quick.on(kind, later)
    quick.on(EventKind.ACCOUNT_CHANGED, first_of_all)
    await publish(0, kind=EventKind.CANDLES_IMPORTED)
    newest = await in_thread(ControlEvent.objects.newest)
    assert newest is not None
    told = EventMessage(newest.position + 1, EventKind.INSTRUMENTS_CHANGED, {"number": 1})
    beyond = EventMessage(newest.position + 1_000, EventKind.KEY_REVOKED, {"number": 3})
    early = EventMessage(newest.position + 2_000, EventKind.ACCOUNT_CHANGED, {"number": 0})
    await send_until(first_of_all, early)
    # Once the second of each is heard, the first has arrived that way.
    read = [partial(publish, 1), partial(publish, 2, kind=EventKind.TIER_CHANGED)]
    sent = [partial(in_thread, send_to_processes, each) for each in (told, beyond)]
    for number, (first, second) in enumerate((read, sent) if is_read_first else (sent, read), 1):
        await first()
        await slow.begun.wait()
        await second()
        await later.hears(number)
    slow.go.set()
    await quick.read()
    assert heard.heard == [1]


@pytest.mark.parametrize(
    ("kind", "ends_access"), [(EventKind.TIER_CHANGED, False), (EventKind.ACCOUNT_CHANGED, True)]
)
async def test_keys_stay_known_beside_a_slow_handler_of_what_ends_nobodys_access_alone(
    quick: EventFeed, kind: EventKind, ends_access: bool
) -> None:
    slow, early = Slow(), Listener()
    quick.on(kind, slow)
    quick.on(EventKind.KEY_REVOKED, early)
    await publish(1, kind=kind)
    await slow.begun.wait()
    await publish(2, kind=EventKind.KEY_REVOKED)
    assert await early.hears(1) == [2]
    quick.read_at -= 2 * quick.STALE_AFTER_S
    # A read that began before the first event may still count for a while.
    await until(lambda: quick.is_current is not ends_access)
    slow.go.set()


async def test_question_that_its_asker_left_still_counts_as_unanswered(
    quick: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.events.event_feed.SURE_WITHIN_S", 0.05)
    monkeypatch.setattr("core.events.event_feed.POLL_S", 3600)
    await quick.read()
    frozen, asked_at = Frozen(quick, monkeypatch), quick.own_now()
    with contextlib.suppress(Overloaded):
        await quick.make_sure()
    left_at = quick.own_now()
    try:
        assert quick.asked_at is not None
        assert asked_at <= quick.asked_at <= left_at
    finally:
        frozen.thaw()
    await until(lambda: quick.asked_at is None)


async def test_standstill_of_our_own_is_no_silence_of_the_database(
    quick: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "STALE_AFTER_S", PATIENCE_S)
    frozen = Frozen(quick, monkeypatch)
    await until(lambda: quick.asked_at is not None)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * PATIENCE_S)
    monkeypatch.setattr("core.events.event_feed.time", later)
    monkeypatch.setattr("core.events.event_feed.time", later)
    try:
        assert not quick.is_current
        assert not quick.is_database_away
    finally:
        frozen.thaw()
    await quick.make_sure()
    await until(lambda: quick.is_current)


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
