from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.streams.hub.delivery import write_each
from market.streams.hub.subscribers import Subscriber
from serving.websocket.connection import frame

from .hubs import HubCase, KernelConnection, RecordedConnection, TextPublication

TOPICS = ("EURUSD", "GBPUSD", "XAUUSD")
clients = st.integers(0, 3)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(TOPICS)),
        st.tuples(st.just("publish"), st.sampled_from(TOPICS)),
        st.tuples(st.just("turn"), st.none()),
        st.tuples(st.just("subscribe"), st.tuples(clients, st.sets(st.sampled_from(TOPICS)), st.booleans())),
        st.tuples(st.sampled_from(["reply", "fill", "read", "leave"]), clients),
    ),
    max_size=60,
)


class World:
    """A hub with four clients, and what each of them is due."""

    def __init__(self, kind: type[RecordedConnection]) -> None:
        self.case = HubCase(kind)
        self.clients = [self.case.join("EURUSD") for _ in range(4)]
        self.variants = [False] * 4
        self.due: defaultdict[Subscriber, list[str]] = defaultdict(list)
        self.number = 0

    def publish(self, topic: str) -> None:
        self.number += 1
        self.case.say(f"{topic} {self.number}", topic=topic)
        for (subscriber, _), variant in zip(self.clients, self.variants, strict=True):
            if subscriber.is_open and topic in subscriber.topics:
                self.due[subscriber].append(f"{topic} {self.number}" + ":1" * variant)

    def turn(self, _: None) -> None:
        self.case.turn()

    def subscribe(self, wish: tuple[int, set[str], bool]) -> None:
        client, topics, variant = wish
        self.variants[client] = variant
        self.case.hub.subscribe(self.clients[client][0], topics, int(variant))

    def reply(self, client: int) -> None:
        subscriber, _ = self.clients[client]
        subscriber.send(frame(b"reply"))
        if subscriber.is_open:
            self.due[subscriber].append("reply")

    def fill(self, client: int) -> None:
        self.clients[client][1].is_full = True

    def read(self, client: int) -> None:
        self.clients[client][1].read()

    def leave(self, client: int) -> None:
        self.clients[client][0].ended()


@pytest.mark.parametrize("kind", [RecordedConnection, KernelConnection])
@given(moves)
def test_each_hears_its_own_topics_and_replies_once_and_in_order_however_it_reads(
    kind: type[RecordedConnection], moves: list[tuple[str, object]]
) -> None:
    world = World(kind)
    for name, value in moves:
        getattr(world, name)(value)
    for _, connection in world.clients:
        connection.read()
    for _ in range(2):
        world.case.turn()

    for subscriber, connection in world.clients:
        due = world.due[subscriber]
        assert connection.heard == (due if subscriber.is_open else due[: len(connection.heard)])
    assert world.case.slow == []
    for subscriber, _ in world.clients:
        subscriber.ended()
    assert world.case.hub.members == len(world.case.hub.slow.subscribers) == len(world.case.hub.topics) == 0
    world.case.clear()


def test_what_is_published_in_one_turn_leaves_in_one_write(case: HubCase) -> None:
    _, connection = case.join("EURUSD", "XAUUSD")
    case.say("a", "b")
    case.say("c", topic="XAUUSD")
    assert connection.writes == []
    case.turn()
    assert connection.writes == [frame(b"a") + frame(b"b") + frame(b"c")]


def test_message_is_encoded_once_for_each_variant_that_is_wanted(case: HubCase) -> None:
    plain = [case.join("EURUSD")[1] for _ in range(2)]
    numbered, everything = case.join("EURUSD", variant=1)[1], case.join("*")[1]
    subscriber, _ = case.join("XAUUSD", variant=2)
    message, unheard = TextPublication("a"), TextPublication("b")
    case.hub.publish(message, "EURUSD", "*")
    case.hub.subscribe(subscriber, [])
    case.hub.publish(unheard, "XAUUSD")
    case.turn()
    assert (sorted(message.encodings), unheard.encodings) == ([0, 1], [])
    assert [each.heard for each in (*plain, numbered, everything)] == [["a"], ["a"], ["a:1"], ["a"]]


def test_the_same_bytes_go_to_all_with_the_same_subscriptions() -> None:
    case = HubCase()
    connections = [case.join("EURUSD", "XAUUSD")[1] for _ in range(3)]
    case.say("a", "b")
    case.turn()
    assert len({id(connection.writes[0]) for connection in connections}) == 1


def test_end_closes_after_what_was_due_and_the_last_word(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    case.say("a")
    case.hub.end(subscriber, 4401, last=frame(b"bye"))
    case.say("b")
    case.turn()
    assert connection.heard == ["a"]
    assert connection.closed == [(4401, frame(b"bye"))]


@pytest.mark.parametrize("fault", [RuntimeError("closed"), OSError(32, "Broken pipe"), ValueError("odd")])
@pytest.mark.parametrize("broken", [{0}, {1, 2, 5}, {3, 4}, set(range(6))])
def test_connection_that_fails_at_a_write_leaves_the_others_alone(
    case: HubCase, fault: Exception, broken: set[int]
) -> None:
    # The last two have symbols of their own.
    connections = [case.join("EURUSD", *["XAUUSD"] * (place > 3), f"X{place}")[1] for place in range(6)]
    for place in broken:
        connections[place].fault = fault
    for text in ("a", "b"):
        case.say(text)
        case.turn()
    for place, connection in enumerate(connections):
        assert connection.heard == ([] if place in broken else ["a", "b"])
        assert connection.is_aborted is (place in broken)
    assert case.hub.broken == len(broken)


def test_what_stops_the_process_is_not_held_back() -> None:
    def stop(data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_each([stop], [b"a"], list[int]().append)


def test_client_may_leave_join_and_change_subscriptions_during_a_flush() -> None:
    """What is being written is under way: no write of a connection ends another one."""
    case = HubCase()
    subscriber, first = case.join("EURUSD")
    leaving, second = case.join("EURUSD")
    _, third = case.join("EURUSD")
    _, gold = case.join("XAUUSD")

    def change() -> None:
        first.at_write = None
        leaving.ended()
        case.hub.subscribe(subscriber, ["XAUUSD"])
        case.join("EURUSD")

    first.at_write = change
    for text in ("a", "b"):
        case.say(text)
        case.say(f"gold {text}", topic="XAUUSD")
        case.turn()
    assert first.heard == ["a", "gold b"]
    assert (second.heard, third.heard, gold.heard) == (["a"], ["a", "b"], ["gold a", "gold b"])


def test_wrote_at_is_the_time_of_the_last_frame(case: HubCase) -> None:
    subscriber, _ = case.join("EURUSD")
    case.turns.now = 3.0
    case.say("a")
    case.turn()
    assert subscriber.wrote_at == 3.0
    case.turns.now = 5.0
    case.hub.subscribe(subscriber, ["EURUSD", "XAUUSD"])
    assert subscriber.wrote_at == 3.0
    subscriber.send(frame(b"reply"))
    assert subscriber.wrote_at == 5.0
