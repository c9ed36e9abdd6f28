"""From the commit of a signal to the hub: in commit order, none lost, none twice."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from instruments.models import Instrument
from market.streams.announced_stream import LATEST
from market.streams.wire import SENT
from signals_feed.models import Announcement, Signal
from signals_feed.stream import SignalStream, position_of, read
from signals_feed.wire import COLUMNS, encode_signal
from tests.core.events.following import follow
from tests.factories import NOON, make_instrument, make_signal, make_user
from tests.market.streams.hub.hubs import RecordedConnection
from tests.patience import PATIENCE_S
from tests.signals_feed.published_signals import close_at, put_in_feed

from .announcing import AWAY, Journal, heard, join, make_announced, make_stream

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]
BID, ASK = Decimal("1.0850"), Decimal("1.0852")
Frame = dict[str, Any]


@pytest.fixture
def eurusd() -> Instrument:
    return make_instrument()


@pytest.fixture
def marta() -> User:
    return make_user("marta")


def make_draft(instrument: Instrument, user: User, **terms: Any) -> Signal:
    prices = {"entry": "1.0842", "stop_loss": "1.0810", "take_profit": "1.0900", "tradable_price": "1.0842"}
    fields = {name: Decimal(price) for name, price in prices.items()} | {"direction": "buy"} | terms
    return Signal(instrument=instrument, user=user, **fields)


def published(instrument: Instrument, user: User, **terms: Any) -> Signal:
    signal = make_draft(instrument, user, **terms)
    put_in_feed(signal)
    return signal


def closed(signal: Signal, reason: str = "manual") -> Signal:
    if reason == "cancelled":
        Signal.objects.filter(pk=signal.pk).update(cancel_reason="wrong symbol")
    assert close_at(signal, BID, ASK, reason)
    return signal


def frames(line: RecordedConnection) -> list[Frame]:
    return [json.loads(text) for text in line.heard]


def rest(signal: Signal) -> bytes:
    """As GET /api/signals answers it."""
    return encode_signal(Signal.objects.values_list(*COLUMNS).get(pk=signal.pk))


# What is announced.
def test_signal_is_announced_with_its_event(eurusd: Instrument, marta: User) -> None:
    signal = published(eurusd, marta)
    event = ControlEvent.objects.get(kind=EventKind.SIGNAL_PUBLISHED)
    assert event.facts == {"signal": str(signal.pk)}
    assert list(Announcement.objects.values_list("position", "signal", "kind")) == [
        (event.position, signal.pk, "published")
    ]


@pytest.mark.parametrize("reason", Signal.CloseReason.values)
def test_closure_is_announced_with_its_event_whatever_closed_it(
    eurusd: Instrument, marta: User, reason: str
) -> None:
    signal = closed(published(eurusd, marta), reason)
    event = ControlEvent.objects.get(kind=EventKind.SIGNAL_CLOSED)
    assert event.facts == {"signal": str(signal.pk), "reason": reason}
    assert Announcement.objects.get(kind="closed").position == event.position


def test_publication_that_is_rolled_back_is_not_announced(eurusd: Instrument, marta: User) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        published(eurusd, marta)
        raise ZeroDivisionError
    assert not Signal.objects.exists()
    assert not Announcement.objects.exists()
    assert not ControlEvent.objects.filter(kind=EventKind.SIGNAL_PUBLISHED).exists()


def test_publication_that_cannot_be_announced_does_not_happen(eurusd: Instrument, marta: User) -> None:
    signal = published(eurusd, marta)
    with pytest.raises(IntegrityError):
        put_in_feed(signal)
    assert (Signal.objects.count(), Announcement.objects.count()) == (1, 1)


def test_nothing_is_announced_twice(eurusd: Instrument, marta: User) -> None:
    signal = published(eurusd, marta)
    with pytest.raises(IntegrityError):
        Announcement.objects.create(position=LATEST, signal=signal, kind="published")


def test_new_signal_is_what_rest_answers_without_its_status_and_with_a_time(
    eurusd: Instrument, marta: User
) -> None:
    signal = published(eurusd, marta, published_at=NOON)
    [announced] = read(0, LATEST, 10)
    assert (
        announced.frame == rest(signal).replace(b',"status":"active"', b"")[:-1] + b',"time":1795003200000}'
    )


def test_new_signal_is_the_same_when_it_is_closed_before_it_is_told(eurusd: Instrument, marta: User) -> None:
    signal = published(eurusd, marta)
    [before] = read(0, LATEST, 10)
    closed(signal)
    assert read(0, LATEST, 10)[0] == before


def test_closure_is_what_rest_answers_with_a_type_and_the_time_it_closed(
    eurusd: Instrument, marta: User
) -> None:
    signal = published(eurusd, marta, published_at=NOON)
    close_at(signal, BID, ASK, at=NOON + timedelta(minutes=1))
    announced = read(0, LATEST, 10)[1]
    assert announced.frame == b'{"type":"signal.closed",' + rest(signal)[1:-1] + b',"time":1795003260000}'


# Where a client goes on.
def test_place_of_a_signal_is_where_it_was_published(eurusd: Instrument, marta: User) -> None:
    signal = closed(published(eurusd, marta))
    assert position_of(str(signal.pk)) == Announcement.objects.get(kind="published").position


@pytest.mark.parametrize("signal_id", ["", "no-id", "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01", "٣" * 32])
def test_unknown_signal_has_no_place(signal_id: str) -> None:
    assert position_of(signal_id) is None


def test_signal_has_a_place_for_seven_days(eurusd: Instrument, marta: User, clock: Any) -> None:
    signal = published(eurusd, marta, published_at=NOON)
    clock.shift(7 * 86_400)
    assert position_of(str(signal.pk)) is not None
    clock.shift(1)
    assert position_of(str(signal.pk)) is None


def test_signal_that_was_never_announced_has_no_place(eurusd: Instrument) -> None:
    assert position_of(str(make_signal(eurusd).pk)) is None


def test_each_portion_of_a_replay_and_each_place_is_one_query(
    eurusd: Instrument, marta: User, django_assert_num_queries: Callable[..., Any]
) -> None:
    signals = [published(eurusd, marta) for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(read(0, LATEST, 3)) == 3
    with django_assert_num_queries(1):
        position_of(str(signals[0].pk))


# How it comes to the hub.
@pytest.fixture
async def stream() -> AsyncIterator[SignalStream]:
    events = EventFeed()
    running = SignalStream()
    follow(events, running)
    await events.start()
    await running.start()
    yield running
    await running.stop()
    await events.stop()


async def until(count: int, line: RecordedConnection) -> list[Frame]:
    async with asyncio.timeout(PATIENCE_S):
        while len(line.heard) < count:  # noqa: ASYNC110 - what is waited for comes from a thread
            await asyncio.sleep(0.005)
    return frames(line)


async def test_signal_of_any_process_is_heard_by_its_symbol_and_by_all(stream: SignalStream) -> None:
    (_, one), (_, every), (_, other) = (join(stream, name) for name in ("EURUSD", "*", "XAUUSD"))
    signal = await in_thread(lambda: published(make_instrument(), make_user("marta")))
    assert [told["id"] for told in await until(1, one)] == [str(signal.pk)]
    assert frames(every) == frames(one)
    assert frames(other) == []


async def test_closure_is_heard_only_by_those_who_asked_and_once(stream: SignalStream) -> None:
    (_, plain), (_, asked) = join(stream, "*"), join(stream, "*", "closed/*")
    signal = await in_thread(lambda: closed(published(make_instrument(), make_user("marta"))))
    told = await until(2, asked)
    assert [frame.get("type") for frame in told] == [None, "signal.closed"]
    assert {frame["id"] for frame in told} == {str(signal.pk)}
    assert [frame.get("type") for frame in frames(plain)] == [None]


async def test_what_was_announced_before_the_start_is_not_new() -> None:
    before = await in_thread(lambda: published(make_instrument(), make_user("marta")))
    events = EventFeed()
    stream = SignalStream()
    follow(events, stream)
    await events.start()
    await stream.start()
    _, line = join(stream, "*")
    after = await in_thread(published, before.instrument, before.user)
    assert [frame["id"] for frame in await until(1, line)] == [str(after.pk)]
    await stream.stop()
    await events.stop()


async def test_signals_of_many_writers_are_heard_in_commit_order(stream: SignalStream) -> None:
    _, line = join(stream, "*", "closed/*")
    instrument, user = await in_thread(lambda: (make_instrument(), make_user("marta")))

    def write() -> None:
        for _ in range(5):
            closed(published(instrument, user))
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    told = await until(40, line)
    for thread in threads:
        await in_thread(thread.join)
    kinds = await in_thread(
        lambda: list(Announcement.objects.order_by("position").values_list("signal", "kind"))
    )
    assert [(frame["id"], "closed" if "type" in frame else "published") for frame in told] == [
        (str(signal), kind) for signal, kind in kinds
    ]


async def test_announcement_waits_while_the_database_is_away(caplog: pytest.LogCaptureFixture) -> None:
    journal, events = Journal(), EventFeed()
    stream = SignalStream(journal.read)
    follow(events, stream)
    await events.start()
    await stream.start()
    _, line = join(stream, "*")
    journal.rows, journal.faults = [make_announced(1), make_announced(2)], [AWAY, ZeroDivisionError()]
    with caplog.at_level(logging.CRITICAL):
        await in_thread(lambda: published(make_instrument(), make_user("marta")))
        await until(2, line)
    assert heard(line) == [1, 2]
    await stream.stop()
    await events.stop()


async def test_two_who_tell_at_once_tell_it_once() -> None:
    stream = make_stream(Journal([make_announced(1), make_announced(2)], [2] * 99))
    _, line = join(stream, "*")
    await asyncio.gather(stream.send_new(), stream.send_new())
    stream.hub.flush()
    assert heard(line) == [1, 2]


async def test_lag_tells_when_a_frame_was_sent() -> None:
    stream = make_stream(Journal([make_announced(1), make_announced(2)]), position=1)
    subscriber, line = join(stream)
    await stream.replay(subscriber, await stream.look_back(0), {"*"}, SENT)
    await stream.send_new()
    stream.hub.flush()
    assert [set(frame) for frame in frames(line)] == [{"n", "sent"}] * 2


async def test_end_of_the_process_forgets_everybody(stream: SignalStream) -> None:
    join(stream, "*")
    await stream.stop()
    assert stream.hub.members == 0
