from __future__ import annotations

import asyncio

import pytest

from market.streams.hub import backlog
from serving.websocket.framing import frame
from tests.patience import PATIENCE_S

from .hubs import House, Line, Price


def make_slow(house: House, *topics: str, latest: bool = False) -> Line:
    """It has taken "first" and reads nothing more."""
    _, line = house.join(*topics or ("EURUSD",), latest=latest)
    line.is_full = True
    house.hub.publish(Price("first", 1), *topics or ("EURUSD",))
    house.turn()
    line.writes.clear()
    return line


def test_what_a_paused_connection_is_due_waits_and_comes_in_order(house: House) -> None:
    line = make_slow(house)
    for text in ("a", "b"):
        house.say(text, text * 2)
        house.turn()
    assert line.writes == []
    line.read()
    house.say("c")
    house.turn()
    assert line.heard == ["a", "aa", "b", "bb", "c"]


def test_others_go_on_meanwhile(house: House) -> None:
    line = make_slow(house)
    _, other = house.join("EURUSD")
    house.say("a")
    house.turn()
    assert (line.heard, other.heard) == ([], ["a"])


def test_a_reply_waits_in_its_place(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    subscriber.send(frame(b"hello"))
    house.say("a")
    subscriber.send(frame(b"reply"))
    house.say("b")
    house.turn()
    line.read()
    house.turn()
    assert line.heard == ["hello", "a", "reply", "b"]


def test_it_may_be_paused_again_while_it_catches_up(house: House) -> None:
    line = make_slow(house)
    for text in ("a", "b"):
        house.say(text * (backlog.PORTION_BYTES + 1))
        house.turn()
    line.read()
    line.is_full = True
    house.turn()
    assert len(line.writes) == 1
    line.read()
    house.turn()
    assert [text[0] for text in line.heard] == ["a", "b"]
    assert house.slow == []


def test_2000_frames_may_wait_and_no_more(house: House) -> None:
    line = make_slow(house)
    house.say(*["a"] * 2_000)
    house.turn()
    assert house.slow == []
    house.say("b")
    house.turn()
    house.turn()
    assert house.slow == [line]


def test_a_mebibyte_may_wait_with_what_the_connection_holds(house: House) -> None:
    line = make_slow(house)
    line.waiting = 4_000
    house.say("a" * (1024 * 1024 - 5_000))
    house.turn()
    assert house.slow == []
    house.say("a" * 1_000)
    house.turn()
    house.turn()
    assert house.slow == [line]


def test_5_seconds_without_progress_are_too_slow_also_in_silence(house: House) -> None:
    line = make_slow(house)
    house.turns.wait(4.5)
    assert house.slow == []
    house.turns.wait(1)
    assert house.slow == [line]


def test_who_reads_a_little_is_making_progress(house: House) -> None:
    line = make_slow(house)
    line.waiting = 10_000
    for _ in range(10):
        line.waiting -= 100
        house.turns.wait(2)
    assert house.slow == []


def test_who_was_given_up_is_told_once_and_gets_nothing_more_but_its_end(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    house.say("a")
    house.turn()
    house.turns.wait(6)
    line.read()
    house.say("b")
    house.turns.wait(6)
    house.hub.end(subscriber, 4430, last=frame(b"too slow"))
    assert (line.heard, line.closed) == (["a"], [(4430, frame(b"too slow"))])
    assert (house.slow, house.hub.slow.given_up) == ([line], 1)


def test_nothing_is_swept_for_when_nobody_is_slow(house: House) -> None:
    line = make_slow(house)
    line.read()
    house.turn()
    house.turns.wait(60)
    assert house.slow == []
    assert house.turns.timers == 0


def test_with_latest_only_the_newest_of_each_topic_waits(house: House) -> None:
    line = make_slow(house, "EURUSD", "XAUUSD", latest=True)
    for number in range(1, 4):
        house.hub.publish(Price(f"euro{number}", number), "EURUSD")
        house.turn()
    house.hub.publish(Price("gold", 7), "XAUUSD")
    house.turn()
    line.read()
    house.turn()
    assert line.heard == ["euro3 dropped 2", "euro3×6", "gold×7"]


def test_after_it_caught_up_with_the_latest_it_gets_all_again(house: House) -> None:
    line = make_slow(house, latest=True)
    house.hub.publish(Price("a", 1), "EURUSD")
    line.read()
    house.turn()
    for name in ("b", "c"):
        house.hub.publish(Price(name, 1), "EURUSD")
    house.turn()
    assert line.heard == ["a×1", "b×1", "c×1"]


def test_with_latest_no_number_of_messages_is_too_many(house: House) -> None:
    line = make_slow(house, latest=True)
    for _ in range(3_000):
        house.hub.publish(Price("a", 1), "EURUSD")
    house.turn()
    line.read()
    house.turn()
    assert line.heard == ["a dropped 2999", "a×3000"]


def test_what_was_pending_when_it_was_paused_is_not_lost(house: House) -> None:
    """Paused by something else than a frame: a ping that did not fit."""
    _, line = house.join("EURUSD", latest=True)
    house.hub.publish(Price("a", 1), "EURUSD")
    line.waiting = 1
    assert line.watcher is not None
    line.watcher.paused()
    house.turn()
    for name in ("b", "c"):
        house.hub.publish(Price(name, 1), "EURUSD")
        house.turn()
    line.read()
    house.turn()
    assert line.heard == ["a×1", "c dropped 1", "c×2"]


def test_with_latest_5_seconds_without_progress_are_too_slow_all_the_same(house: House) -> None:
    line = make_slow(house, latest=True)
    house.turns.wait(6)
    assert house.slow == [line]


def test_with_latest_a_reply_is_kept_and_an_unsubscribed_topic_is_not(house: House) -> None:
    subscriber, line = house.join("EURUSD", "XAUUSD", latest=True)
    line.is_full = True
    subscriber.send(frame(b"hello"))
    for topic in ("EURUSD", "XAUUSD"):
        house.hub.publish(Price(topic, 1), topic)
    house.hub.unsubscribe(subscriber, ["EURUSD"])
    subscriber.send(frame(b"unsubscribed"))
    line.read()
    house.turn()
    assert line.heard == ["hello", "unsubscribed", "XAUUSD×1"]


def test_subscriptions_change_also_while_it_is_slow(house: House) -> None:
    subscriber, line = house.join("EURUSD", latest=True)
    line.is_full = True
    subscriber.send(frame(b"hello"))
    house.hub.subscribe(subscriber, ["XAUUSD"], variant=1)
    house.hub.publish(Price("gold", 1), "XAUUSD")
    line.read()
    house.turn()
    assert line.heard == ["hello", "gold×1:1"]


@pytest.mark.parametrize("latest", [False, True])
def test_a_slow_one_that_goes_leaves_nothing_behind(house: House, latest: bool) -> None:
    line = make_slow(house, latest=latest)
    house.say("a")
    assert line.watcher is not None
    line.watcher.ended()
    house.turns.wait(6)
    assert (house.slow, house.hub.members, len(house.hub.slow.subscribers)) == ([], 0, 0)
    assert house.hub.slow.conflating == {}


async def test_drained_waits_for_the_client_to_catch_up(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    await subscriber.drained()
    line.is_full = True
    subscriber.send(frame(b"a"))
    waiting = asyncio.create_task(subscriber.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    line.read()
    house.turn()
    await asyncio.wait_for(waiting, PATIENCE_S)


async def test_drained_ends_when_the_client_is_gone(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    subscriber.send(frame(b"a"))
    waiting = asyncio.create_task(subscriber.drained())
    await asyncio.sleep(0)
    subscriber.ended()
    await asyncio.wait_for(waiting, PATIENCE_S)
    assert not subscriber.is_open
