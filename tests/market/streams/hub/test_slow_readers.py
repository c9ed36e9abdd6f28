from __future__ import annotations

import asyncio

import pytest

from market.streams.hub import backlog
from serving.websocket.framing import frame
from tests.patience import PATIENCE_S

from .hubs import HubCase, Price, RecordedConnection


def make_slow(case: HubCase, *topics: str, latest: bool = False) -> RecordedConnection:
    """It has taken "first" and reads nothing more."""
    _, connection = case.join(*topics or ("EURUSD",), latest=latest)
    connection.is_full = True
    case.hub.publish(Price("first", 1), *topics or ("EURUSD",))
    case.turn()
    connection.writes.clear()
    return connection


def test_what_a_paused_connection_is_due_waits_and_comes_in_order(case: HubCase) -> None:
    connection = make_slow(case)
    for text in ("a", "b"):
        case.say(text, text * 2)
        case.turn()
    assert connection.writes == []
    connection.read()
    case.say("c")
    case.turn()
    assert connection.heard == ["a", "aa", "b", "bb", "c"]


def test_others_go_on_meanwhile(case: HubCase) -> None:
    connection = make_slow(case)
    _, other = case.join("EURUSD")
    case.say("a")
    case.turn()
    assert (connection.heard, other.heard) == ([], ["a"])


def test_a_reply_waits_in_its_place(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    subscriber.send(frame(b"hello"))
    case.say("a")
    subscriber.send(frame(b"reply"))
    case.say("b")
    case.turn()
    connection.read()
    case.turn()
    assert connection.heard == ["hello", "a", "reply", "b"]


def test_it_may_be_paused_again_while_it_catches_up(case: HubCase) -> None:
    connection = make_slow(case)
    for text in ("a", "b"):
        case.say(text * (backlog.PORTION_BYTES + 1))
        case.turn()
    connection.read()
    connection.is_full = True
    case.turn()
    assert len(connection.writes) == 1
    connection.read()
    case.turn()
    assert [text[0] for text in connection.heard] == ["a", "b"]
    assert case.slow == []


def test_2000_frames_may_wait_and_no_more(case: HubCase) -> None:
    connection = make_slow(case)
    case.say(*["a"] * 2_000)
    case.turn()
    assert case.slow == []
    case.say("b")
    case.turn()
    case.turn()
    assert case.slow == [connection]


def test_a_mebibyte_may_wait_with_what_the_connection_holds(case: HubCase) -> None:
    connection = make_slow(case)
    connection.waiting = 4_000
    case.say("a" * (1024 * 1024 - 5_000))
    case.turn()
    assert case.slow == []
    case.say("a" * 1_000)
    case.turn()
    case.turn()
    assert case.slow == [connection]


def test_5_seconds_without_progress_are_too_slow_also_in_silence(case: HubCase) -> None:
    connection = make_slow(case)
    case.turns.wait(4.5)
    assert case.slow == []
    case.turns.wait(1)
    assert case.slow == [connection]


def test_who_reads_a_little_is_making_progress(case: HubCase) -> None:
    connection = make_slow(case)
    connection.waiting = 10_000
    for _ in range(10):
        connection.waiting -= 100
        case.turns.wait(2)
    assert case.slow == []


def test_who_was_given_up_is_told_once_and_gets_nothing_more_but_its_end(case: HubCase) -> None:
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


def test_nothing_is_swept_for_when_nobody_is_slow(case: HubCase) -> None:
    connection = make_slow(case)
    connection.read()
    case.turn()
    case.turns.wait(60)
    assert case.slow == []
    assert case.turns.timers == 0


def test_with_latest_only_the_newest_of_each_topic_waits(case: HubCase) -> None:
    connection = make_slow(case, "EURUSD", "XAUUSD", latest=True)
    for number in range(1, 4):
        case.hub.publish(Price(f"euro{number}", number), "EURUSD")
        case.turn()
    case.hub.publish(Price("gold", 7), "XAUUSD")
    case.turn()
    connection.read()
    case.turn()
    assert connection.heard == ["euro3 dropped 2", "euro3×6", "gold×7"]


def test_after_it_caught_up_with_the_latest_it_gets_all_again(case: HubCase) -> None:
    connection = make_slow(case, latest=True)
    case.hub.publish(Price("a", 1), "EURUSD")
    connection.read()
    case.turn()
    for name in ("b", "c"):
        case.hub.publish(Price(name, 1), "EURUSD")
    case.turn()
    assert connection.heard == ["a×1", "b×1", "c×1"]


def test_with_latest_no_number_of_messages_is_too_many(case: HubCase) -> None:
    connection = make_slow(case, latest=True)
    for _ in range(3_000):
        case.hub.publish(Price("a", 1), "EURUSD")
    case.turn()
    connection.read()
    case.turn()
    assert connection.heard == ["a dropped 2999", "a×3000"]


def test_what_was_pending_when_it_was_paused_is_not_lost(case: HubCase) -> None:
    """Paused by something else than a frame: a ping that did not fit."""
    _, connection = case.join("EURUSD", latest=True)
    case.hub.publish(Price("a", 1), "EURUSD")
    connection.waiting = 1
    assert connection.watcher is not None
    connection.watcher.paused()
    case.turn()
    for name in ("b", "c"):
        case.hub.publish(Price(name, 1), "EURUSD")
        case.turn()
    connection.read()
    case.turn()
    assert connection.heard == ["a×1", "c dropped 1", "c×2"]


def test_with_latest_5_seconds_without_progress_are_too_slow_all_the_same(case: HubCase) -> None:
    connection = make_slow(case, latest=True)
    case.turns.wait(6)
    assert case.slow == [connection]


def test_with_latest_a_reply_is_kept_and_an_unsubscribed_topic_is_not(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD", "XAUUSD", latest=True)
    connection.is_full = True
    subscriber.send(frame(b"hello"))
    for topic in ("EURUSD", "XAUUSD"):
        case.hub.publish(Price(topic, 1), topic)
    case.hub.subscribe(subscriber, ["XAUUSD"])
    subscriber.send(frame(b"unsubscribed"))
    connection.read()
    case.turn()
    assert connection.heard == ["hello", "unsubscribed", "XAUUSD×1"]


def test_subscriptions_change_also_while_it_is_slow(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD", latest=True)
    connection.is_full = True
    subscriber.send(frame(b"hello"))
    case.hub.subscribe(subscriber, ["EURUSD", "XAUUSD"], variant=1)
    case.hub.publish(Price("gold", 1), "XAUUSD")
    connection.read()
    case.turn()
    assert connection.heard == ["hello", "gold×1:1"]


@pytest.mark.parametrize("latest", [False, True])
def test_a_slow_one_that_goes_leaves_nothing_behind(case: HubCase, latest: bool) -> None:
    connection = make_slow(case, latest=latest)
    case.say("a")
    assert connection.watcher is not None
    connection.watcher.ended()
    case.turns.wait(6)
    assert (case.slow, case.hub.members, len(case.hub.slow.subscribers)) == ([], 0, 0)
    assert case.hub.slow.conflating == {}


async def test_drained_waits_for_the_client_to_catch_up(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    await subscriber.drained()
    connection.is_full = True
    subscriber.send(frame(b"a"))
    waiting = asyncio.create_task(subscriber.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    connection.read()
    case.turn()
    await asyncio.wait_for(waiting, PATIENCE_S)


async def test_drained_ends_when_the_client_is_gone(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    subscriber.send(frame(b"a"))
    waiting = asyncio.create_task(subscriber.drained())
    await asyncio.sleep(0)
    subscriber.ended()
    await asyncio.wait_for(waiting, PATIENCE_S)
    assert not subscriber.is_open
