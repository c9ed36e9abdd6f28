"""Clients that read too slowly, and long replays, which go out as their client reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from market.streams.hub import subscribers
from market.streams.hub.hub import FEW, replay
from market.streams.hub.subscribers import MOST_FRAMES, Subscriber
from serving.websocket.connection import frame
from tests.patience import PATIENCE_S

from .hubs import HubCase, Price, RecordedConnection

# More than may wait for a slow reader, in frames and in bytes.
MANY, TEXT = 2 * MOST_FRAMES, "x" * 1_000


def make_slow(case: HubCase, *topics: str, latest: bool = False) -> tuple[Subscriber, RecordedConnection]:
    """It has taken "first" and reads nothing more."""
    subscriber, connection = case.join(*topics or ("EURUSD",), latest=latest)
    connection.is_full = True
    subscriber.send(frame(b"first"))
    connection.writes.clear()
    return subscriber, connection


def publish(case: HubCase, *names: str) -> None:
    """A price each, of the topic that its name begins with."""
    for name in names:
        case.hub.publish(Price(name, 1), "XAUUSD" if name.startswith("gold") else "EURUSD")


def read_all(case: HubCase, connection: RecordedConnection) -> list[str]:
    while connection.is_full or connection.waiting:
        connection.read()
        case.turn()
    case.turn()
    return connection.heard


def test_it_may_be_paused_again_while_it_catches_up(case: HubCase) -> None:
    _, connection = make_slow(case)
    for text in ("a", "b"):
        case.say(text * (subscribers.PORTION_BYTES + 1))
        case.turn()
    connection.read()
    connection.is_full = True
    case.turn()
    assert len(connection.writes) == 1
    assert [text[0] for text in read_all(case, connection)] == ["a", "b"]
    assert case.slow == []


@pytest.mark.parametrize(
    ("waiting", "most", "more"),
    [(0, ["a"] * 2_000, "b"), (4_000, ["a" * (1024 * 1024 - 5_000)], "b" * 1_000)],
)
def test_2000_frames_or_a_mebibyte_may_wait_and_no_more(
    case: HubCase, waiting: int, most: list[str], more: str
) -> None:
    _, connection = make_slow(case)
    connection.waiting = waiting
    case.say(*most)
    case.turn()
    assert case.slow == []
    case.say(more)
    case.turn()
    case.turn()
    assert case.slow == [connection]


@pytest.mark.parametrize("latest", [False, True])
def test_5_seconds_without_progress_are_too_slow_also_in_silence(case: HubCase, latest: bool) -> None:
    _, moving = make_slow(case, latest=latest)
    moving.waiting = 10_000
    for _ in range(10):
        moving.waiting -= 100
        case.turns.wait(2)
    _, connection = make_slow(case, latest=latest)
    for wait_s in (2.5, 2):
        case.turns.wait(wait_s)
        moving.waiting -= 100
    assert case.slow == []
    case.turns.wait(1)
    assert case.slow == [connection]


def test_client_that_was_given_up_is_told_once_and_gets_nothing_more_but_its_end(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    case.say("a")
    case.turn()
    case.turns.wait(6)
    connection.read()
    case.say("b")
    case.turns.wait(6)
    case.hub.end(subscriber, 4430, last=frame(b"too slow"))
    assert (connection.heard, connection.closed) == (["a"], [(4430, frame(b"too slow"))])
    assert (case.slow, case.hub.slow.given_up) == ([connection], 1)


def test_nothing_is_swept_for_when_no_client_is_slow(case: HubCase) -> None:
    _, connection = make_slow(case)
    connection.read()
    case.turn()
    case.turns.wait(60)
    assert (case.slow, case.turns.timers) == ([], 0)


def test_with_latest_only_the_newest_of_each_topic_waits_and_then_all_come_again(case: HubCase) -> None:
    _, connection = make_slow(case, "EURUSD", "XAUUSD", latest=True)
    for number in range(1, 3_001):
        publish(case, f"euro{number}")
        if number < 4:
            case.turn()
    publish(case, "gold")
    case.turn()
    assert read_all(case, connection) == ["euro3000 dropped 2999", "euro3000×3000", "gold×1"]
    publish(case, "b", "c")
    case.turn()
    assert connection.heard[3:] == ["b×1", "c×1"]


def test_what_was_pending_when_it_was_paused_is_not_lost(case: HubCase) -> None:
    """Paused by something else than a frame: a ping that did not fit."""
    _, connection = case.join("EURUSD", latest=True)
    publish(case, "a")
    connection.waiting = 1
    assert connection.watcher is not None
    connection.watcher.paused()
    case.turn()
    for name in ("b", "c"):
        publish(case, name)
        case.turn()
    assert read_all(case, connection) == ["a×1", "c dropped 1", "c×2"]


def test_with_latest_a_reply_is_kept_and_an_unsubscribed_topic_is_not(case: HubCase) -> None:
    subscriber, connection = make_slow(case, "EURUSD", "GBPUSD", latest=True)
    publish(case, "euro")
    case.hub.subscribe(subscriber, ["XAUUSD"], variant=1)
    publish(case, "gold")
    subscriber.send(frame(b"unsubscribed"))
    assert read_all(case, connection) == ["unsubscribed", "gold×1:1"]


@pytest.mark.parametrize("latest", [False, True])
def test_a_slow_one_that_goes_leaves_nothing_behind(case: HubCase, latest: bool) -> None:
    subscriber, _ = make_slow(case, latest=latest)
    publish(case, "a")
    subscriber.ended()
    case.turns.wait(6)
    assert (case.slow, case.hub.members, len(case.hub.slow.subscribers)) == ([], 0, 0)
    assert case.hub.slow.conflating == {}


@pytest.mark.parametrize("goes", [False, True])
async def test_drained_waits_for_the_client_to_catch_up_or_to_go(case: HubCase, goes: bool) -> None:
    subscriber, connection = case.join("EURUSD")
    await subscriber.drained()
    connection.is_full = True
    subscriber.send(frame(b"a"))
    waiting = asyncio.create_task(subscriber.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    if goes:
        subscriber.ended()
    else:
        read_all(case, connection)
    await asyncio.wait_for(waiting, PATIENCE_S)
    assert subscriber.is_open is not goes


def frames(count: int = MANY, text: str = "old") -> Iterator[bytes]:
    return (frame(each.encode()) for each in names(count, text))


def names(count: int = MANY, text: str = "old") -> list[str]:
    return [f"{text}{number}" for number in range(count)]


@pytest.mark.parametrize("count", [FEW - 1, MANY])
def test_replayed_frames_come_before_what_is_published_meanwhile(count: int) -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    replay(case.hub.slow, subscriber, frames(count))
    if count < FEW:
        assert connection.heard == names(count)
    case.say("new")
    case.turn()
    case.turn()
    assert connection.heard == [*names(count), "new"]
    assert subscriber.backlog is None


def test_client_that_reads_on_is_not_given_up_for_what_is_replayed_and_frames_are_made_as_they_are_due() -> (
    None
):
    case, made = HubCase(), list[bytes]()
    subscriber, connection = make_slow(case)
    case.say("waits")
    case.turn()
    replay(case.hub.slow, subscriber, (made.append(data) or data for data in frames(text=TEXT)))  # type: ignore[func-returns-value]
    case.say("new")
    case.turn()
    assert len(made) < MANY / 10
    assert read_all(case, connection) == ["waits", *names(text=TEXT), "new"]
    assert case.slow == []


def test_client_that_asks_again_or_stops_reading_or_is_due_too_much_meanwhile_is_given_up() -> None:
    case = HubCase()
    (asking, first), (still, second), (third, _) = (make_slow(case, name) for name in ("A", "B", "EURUSD"))
    for subscriber in (asking, still, third):
        replay(case.hub.slow, subscriber, frames())
    replay(case.hub.slow, asking, frames())
    case.turn()
    assert case.slow == [first]
    publish(case, *["new"] * (MOST_FRAMES + 1))
    case.turn()
    case.turn()
    assert case.slow == [first, third.connection]
    case.turns.wait(6)
    assert case.slow == [first, third.connection, second]


def test_one_that_two_streams_replay_to_is_given_up_only_when_it_asks_one_of_them_again() -> None:
    case = HubCase()
    subscriber, connection = make_slow(case)
    for stream in ("market", "orderflow"):
        replay(case.hub.slow, subscriber, frames(text=stream), stream)
    case.say("new")
    case.turn()
    assert read_all(case, connection) == [*names(text="market"), *names(text="orderflow"), "new"]
    connection.is_full = True
    subscriber.send(frame(b"first"))
    for stream in ("market", "orderflow", "market"):
        assert case.slow == []
        replay(case.hub.slow, subscriber, frames(), stream)
    case.turn()
    assert case.slow == [connection]


def test_latest_price_follows_the_replay_and_an_unsubscribed_one_that_waited_does_not_come() -> None:
    case = HubCase()
    subscriber, connection = make_slow(case, "EURUSD", "XAUUSD", latest=True)
    publish(case, "gold", "euro")
    replay(case.hub.slow, subscriber, frames())
    case.hub.subscribe(subscriber, ["EURUSD"])
    case.turn()
    publish(case, "a", "b", "c")
    case.turn()
    *older, notice, newest = read_all(case, connection)
    assert (sorted(older), notice, newest) == (sorted(["euro×1", *names()]), "c dropped 2", "c×3")
