"""From the commit of a signal to the hub: in commit order, none lost, none twice."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from decimal import Decimal
from itertools import cycle
from typing import Any, get_args

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from market.streams.announced_stream import LATEST, LOOKING_BACK_AT_ONCE, Announced
from signals_feed.ledger.verify import verify
from signals_feed.models import Announcement, Signal
from signals_feed.stream import SignalStream, position_of, read
from signals_feed.wire import CloseReason, Direction
from tests.core.events.following import follow
from tests.factories import make_signal
from tests.market.streams.hub.hubs import RecordedConnection
from tests.patience import PATIENCE_S, until
from tests.signals_feed.published_signals import close_at, make_published, put_in_feed

from .announcing import Journal, heard, join, make_announced, make_stream

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]
BID, ASK = Decimal("1.0850"), Decimal("1.0852")


def closed(signal: Signal, reason: str = "manual") -> Signal:
    if reason == "cancelled":
        Signal.objects.filter(pk=signal.pk).update(cancel_reason="wrong symbol")
    assert close_at(signal, BID, ASK, reason)
    return signal


def frames(line: RecordedConnection) -> list[dict[str, Any]]:
    return [json.loads(text) for text in line.heard]


def test_frames_know_every_reason_and_direction() -> None:
    assert list(get_args(CloseReason)) == Signal.CloseReason.values
    assert list(get_args(Direction)) == Signal.Direction.values


# What is announced.
@pytest.mark.parametrize("reason", Signal.CloseReason.values)
def test_publication_and_closure_are_announced_with_their_events(reason: str) -> None:
    signal = closed(make_published(), reason)
    kinds = EventKind.SIGNAL_PUBLISHED, EventKind.SIGNAL_CLOSED
    begun, ended = ControlEvent.objects.filter(kind__in=kinds).order_by("position")
    assert begun.facts == {"signal": str(signal.pk)}
    assert ended.facts == {"signal": str(signal.pk), "reason": reason}
    assert list(Announcement.objects.order_by("position").values_list("position", "signal", "kind")) == [
        (begun.position, signal.pk, "published"),
        (ended.position, signal.pk, "closed"),
    ]


def test_publication_that_is_rolled_back_is_told_nowhere() -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        make_published()
        raise ZeroDivisionError
    assert not Signal.objects.exists()
    assert not Announcement.objects.exists()
    assert not ControlEvent.objects.filter(kind=EventKind.SIGNAL_PUBLISHED).exists()
    assert verify().entries == 0


def test_nothing_is_announced_twice_and_what_cannot_be_announced_does_not_happen() -> None:
    signal = make_published()
    with pytest.raises(IntegrityError):
        Announcement.objects.create(position=LATEST, signal=signal, kind="published")
    with pytest.raises(IntegrityError):
        put_in_feed(signal)
    assert (Signal.objects.count(), Announcement.objects.count()) == (1, 1)


# Where a client goes on.
def test_place_of_a_signal_is_where_it_was_published() -> None:
    signal, never_announced = closed(make_published()), make_signal()
    assert position_of(str(signal.pk)) == Announcement.objects.get(kind="published").position
    for unknown in ("", "no-id", "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01", "٣" * 32, str(never_announced.pk)):
        assert position_of(unknown) is None


def test_each_portion_of_a_replay_and_each_place_is_one_query(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    signals = [make_published() for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(read(0, LATEST, 3)) == 3
    with django_assert_num_queries(1):
        position_of(str(signals[0].pk))


# How it comes to the hub.
@pytest.fixture
async def stream() -> AsyncIterator[SignalStream]:
    """It starts after one signal was announced."""
    await in_thread(make_published)
    events, running = EventFeed(), SignalStream()
    follow(events, running)
    await events.start()
    await running.start()
    yield running
    await running.stop()
    await events.stop()


async def test_what_was_announced_before_the_start_is_not_new(stream: SignalStream) -> None:
    _, line = join(stream, "*")
    after = await in_thread(make_published)
    await until(lambda: line.heard)
    assert [frame["id"] for frame in frames(line)] == [str(after.pk)]


async def test_signals_of_many_writers_are_heard_in_commit_order(stream: SignalStream) -> None:
    _, line = join(stream, "*", "closed/*")
    first = await in_thread(Signal.objects.select_related("instrument", "user").get)

    def write() -> None:
        for _ in range(5):
            closed(make_published(first.instrument, user=first.user))
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    await until(lambda: len(line.heard) >= 40)
    for thread in threads:
        await in_thread(thread.join)
    announced = Announcement.objects.order_by("position").values_list("signal", "kind")
    assert [("closed" if "type" in frame else "published", frame["id"]) for frame in frames(line)] == [
        (kind, str(signal)) for signal, kind in (await in_thread(list, announced))[1:]
    ]


# From what is replayed to what is live: whoever comes, whenever, hears each announcement once.
SYMBOLS = ("EURUSD", "XAUUSD")
WANTED: tuple[set[str], ...] = (
    {"*"},
    {"EURUSD"},
    {"EURUSD", "XAUUSD"},
    {"*", "closed/*"},
    {"EURUSD", "closed/EURUSD"},
)


@st.composite
def journals(draw: st.DrawFn) -> list[Announced]:
    """Positions have holes: other control events are between them."""
    position, rows = 0, []
    for step, symbol, closed in draw(
        st.lists(st.tuples(st.integers(1, 3), st.sampled_from(SYMBOLS), st.booleans()), max_size=12)
    ):
        position += step
        rows.append(make_announced(position, symbol, closed=closed))
    return rows


def due(rows: list[Announced], after: int, topics: set[str]) -> list[int]:
    return [row.position for row in rows if row.position > after and row.topics & topics]


@settings(max_examples=300)
@given(
    st.data(),
    journals(),
    st.sampled_from(WANTED),
    st.lists(st.integers(0, 3), max_size=6),
    st.integers(0, 12),
)
def test_who_comes_back_hears_all_it_missed_once_and_in_order(
    data: st.DataObject, rows: list[Announced], topics: set[str], pauses: list[int], comes_after: int
) -> None:
    there = data.draw(st.integers(0, len(rows)))
    told, since = ((0, *(row.position for row in rows))[data.draw(st.integers(0, there))] for _ in range(2))

    async def come_back() -> None:
        journal = Journal(rows[:there], cycle(pauses or [0]))
        stream = make_stream(journal, position=told)
        (_, always), (subscriber, line) = join(stream, *topics), join(stream)

        async def commit() -> None:
            for row in rows[there:]:
                await journal.pause()
                journal.rows.append(row)
                await stream.send_new()

        async def client() -> None:
            for _ in range(comes_after):
                await asyncio.sleep(0)
            await stream.replay(subscriber, await stream.look_back(since), topics, 0)

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(commit(), client(), stream.send_new())
        stream.hub.flush()
        assert journal.longest <= 2
        assert (heard(line), heard(always)) == (due(rows, since, topics), due(rows, told, topics))

    asyncio.run(come_back())


@pytest.mark.parametrize(
    ("hears", "wants", "replayed"),
    [
        ({"EURUSD"}, {"*"}, [2, 4]),
        ({"EURUSD"}, {"EURUSD", "closed/EURUSD"}, [3]),
        ({"*", "closed/*"}, {"*"}, []),
    ],
    ids=["other symbols", "closures", "nothing"],
)
async def test_what_a_client_hears_already_is_not_replayed_to_it(
    hears: set[str], wants: set[str], replayed: list[int]
) -> None:
    rows = [make_announced(1), make_announced(2, "XAUUSD"), make_announced(3, closed=True)]
    journal = Journal([*rows, make_announced(4, "XAUUSD")])
    stream = make_stream(journal, position=4)
    subscriber, line = join(stream, *hears)
    await stream.replay(subscriber, await stream.look_back(0), wants, 0)
    assert heard(line) == replayed
    if not replayed:
        assert journal.reads == 1


async def test_crowd_that_comes_back_waits_for_each_other_and_not_in_the_queue_of_all() -> None:
    journal = Journal([make_announced(1)], cycle([3]))
    stream = make_stream(journal, position=1)
    looking = [asyncio.create_task(stream.look_back(0)) for _ in range(300)]
    await asyncio.sleep(0)
    assert journal.reads <= LOOKING_BACK_AT_ONCE
    found = [missed.found for missed in await asyncio.gather(*looking)]
    assert found == [journal.rows] * 300


async def test_what_a_client_heard_before_goes_on_while_more_is_replayed() -> None:
    journal = Journal([make_announced(number) for number in range(1, 6)], cycle([3]))
    stream = make_stream(journal, position=5)
    subscriber, line = join(stream, "XAUUSD")
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    await asyncio.sleep(0)
    journal.rows.append(make_announced(6, "XAUUSD"))
    await stream.send_new()
    await replaying
    stream.hub.flush()
    assert sorted(heard(line)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("leaves", [False, True])
async def test_replay_reads_on_only_as_its_client_reads_and_ends_with_it(leaves: bool) -> None:
    journal = Journal([make_announced(number) for number in range(1, 9)])
    stream = make_stream(journal, position=8)
    subscriber, line = join(stream)
    line.is_full = True
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (heard(line), journal.reads) == ([1, 2], 1)
    if leaves:
        subscriber.ended()
    else:
        line.read()
    await replaying
    assert heard(line) == ([1, 2] if leaves else list(range(1, 9)))
    assert stream.hub.members == (not leaves)


async def test_end_of_the_process_forgets_everybody() -> None:
    stream = make_stream(Journal([]))
    join(stream, "*")
    await stream.stop()
    assert stream.hub.members == 0
