from __future__ import annotations

import pytest

from serving.websocket.framing import frame

from .hubs import HubCase, TextPublication


def test_what_is_published_in_one_turn_leaves_in_one_write(case: HubCase) -> None:
    _, connection = case.join("EURUSD", "XAUUSD")
    case.say("a", "b")
    case.say("c", topic="XAUUSD")
    assert connection.writes == []
    case.turn()
    assert connection.writes == [frame(b"a") + frame(b"b") + frame(b"c")]


def test_the_next_turn_is_another_write(case: HubCase) -> None:
    _, connection = case.join("EURUSD")
    for text in ("a", "b"):
        case.say(text)
        case.turn()
    assert connection.writes == [frame(b"a"), frame(b"b")]


def test_each_hears_its_own_topics_in_the_order_they_were_published(case: HubCase) -> None:
    _, euro = case.join("EURUSD")
    _, gold = case.join("XAUUSD")
    _, both = case.join("XAUUSD", "EURUSD")
    for text, topic in (("a", "EURUSD"), ("b", "XAUUSD"), ("c", "EURUSD")):
        case.say(text, topic=topic)
    case.turn()
    assert (euro.heard, gold.heard, both.heard) == (["a", "c"], ["b"], ["a", "b", "c"])


def test_the_same_bytes_go_to_all_with_the_same_subscriptions() -> None:
    case = HubCase()
    connections = [case.join("EURUSD", "XAUUSD")[1] for _ in range(3)]
    case.say("a", "b")
    case.turn()
    assert len({id(connection.writes[0]) for connection in connections}) == 1


def test_a_message_is_encoded_once_for_each_variant_that_somebody_wants(case: HubCase) -> None:
    plain = [case.join("EURUSD")[1] for _ in range(2)]
    _, numbered = case.join("EURUSD", variant=1)
    case.join("XAUUSD", variant=2)
    message = TextPublication("a")
    case.hub.publish(message, "EURUSD")
    case.turn()
    assert sorted(message.encodings) == [0, 1]
    assert [connection.heard for connection in (*plain, numbered)] == [["a"], ["a"], ["a:1"]]


def test_a_message_to_several_topics_is_encoded_once(case: HubCase) -> None:
    _, one = case.join("EURUSD")
    _, everything = case.join("*")
    message = TextPublication("a")
    case.hub.publish(message, "EURUSD", "*")
    case.turn()
    assert (message.encodings, one.heard, everything.heard) == ([0], ["a"], ["a"])


def test_what_nobody_hears_is_not_encoded(case: HubCase) -> None:
    subscriber, _ = case.join("EURUSD")
    case.hub.subscribe(subscriber, [])
    message = TextPublication("a")
    case.hub.publish(message, "EURUSD")
    assert message.encodings == []


def test_one_that_subscribes_again_hears_what_it_named_last(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD", "GBPUSD")
    for _ in range(2):
        case.hub.subscribe(subscriber, ["XAUUSD", "EURUSD"])
    case.say("none", topic="GBPUSD")
    case.say("a")
    case.say("b", topic="XAUUSD")
    case.turn()
    assert connection.heard == ["a", "b"]
    assert subscriber.topics == {"EURUSD", "XAUUSD"}


def test_a_topic_can_change_its_variant(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD", "XAUUSD")
    case.hub.subscribe(subscriber, ["EURUSD", "XAUUSD"], variant=1)
    case.say("a")
    case.say("b", topic="XAUUSD")
    case.turn()
    assert connection.heard == ["a:1", "b:1"]


def test_a_newcomer_hears_nothing_of_before(case: HubCase) -> None:
    _, early = case.join("EURUSD")
    case.say("a")
    _, late = case.join("EURUSD")
    case.say("b")
    case.turn()
    assert (early.heard, late.heard) == (["a", "b"], ["b"])


def test_who_unsubscribes_still_gets_what_was_published_before(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    case.say("a")
    case.hub.subscribe(subscriber, [])
    case.say("b")
    case.turn()
    assert connection.heard == ["a"]


def test_what_is_sent_to_one_comes_between_what_was_and_what_will_be_published(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    _, other = case.join("EURUSD")
    case.say("a")
    subscriber.send(frame(b"reply"))
    case.say("b")
    case.turn()
    assert (connection.heard, other.heard) == (["a", "reply", "b"], ["a", "b"])


def test_end_closes_after_what_was_due_and_the_last_word(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    case.say("a")
    case.hub.end(subscriber, 4401, last=frame(b"bye"))
    case.say("b")
    case.turn()
    assert connection.heard == ["a"]
    assert connection.closed == [(4401, frame(b"bye"))]


def test_nothing_is_written_after_the_connection_ended(case: HubCase) -> None:
    subscriber, connection = case.join("EURUSD")
    case.say("a")
    subscriber.ended()
    subscriber.send(frame(b"reply"))
    case.turn()
    assert connection.writes == []


@pytest.mark.parametrize("fault", [RuntimeError("closed"), OSError(32, "Broken pipe"), ValueError("odd")])
def test_a_connection_that_fails_at_a_write_leaves_the_others_alone(case: HubCase, fault: Exception) -> None:
    connections = [case.join("EURUSD")[1] for _ in range(3)]
    connections[1].fault = fault
    for text in ("a", "b"):
        case.say(text)
        case.turn()
    assert [connection.heard for connection in connections] == [["a", "b"], [], ["a", "b"]]
    assert connections[1].is_aborted
    assert case.hub.broken == 1


def test_one_with_symbols_of_its_own_fails_alone_too(case: HubCase) -> None:
    _, gold = case.join("XAUUSD")
    _, connection = case.join("EURUSD")
    for text in ("a", "b"):
        case.say(text)
        case.turn()
    connection.fault = OSError(32, "Broken pipe")
    case.say("c")
    case.say("d", topic="XAUUSD")
    case.turn()
    assert connection.heard == ["a", "b"]
    assert connection.is_aborted
    assert gold.heard == ["d"]
    assert case.hub.broken == 1


def test_one_who_leaves_during_a_flush_gets_nothing_after_it() -> None:
    """What is being written is under way: no write of a connection ends another one."""
    case = HubCase()
    _, first = case.join("EURUSD")
    subscriber, second = case.join("EURUSD")
    _, third = case.join("EURUSD")
    first.at_write = subscriber.ended
    for text in ("a", "b"):
        case.say(text)
        case.turn()
    assert (first.heard, second.heard, third.heard) == (["a", "b"], ["a"], ["a", "b"])


def test_one_may_join_and_change_subscriptions_during_a_flush() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    _, gold = case.join("XAUUSD")

    def change() -> None:
        connection.at_write = None
        case.hub.subscribe(subscriber, ["XAUUSD"])
        case.join("EURUSD")

    connection.at_write = change
    case.say("a")
    case.say("b", topic="XAUUSD")
    case.turn()
    case.say("c", topic="XAUUSD")
    case.turn()
    assert gold.heard == ["b", "c"]
    assert connection.heard == ["a", "c"]


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


def test_nothing_is_kept_of_those_who_left(case: HubCase) -> None:
    subscribers = [case.join("EURUSD", f"X{number}", variant=number % 2)[0] for number in range(4)]
    for subscriber in subscribers:
        subscriber.ended()
    assert case.hub.members == 0
