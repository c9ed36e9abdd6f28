from __future__ import annotations

import pytest

from serving.websocket.framing import frame

from .hubs import House, Said


def test_what_is_published_in_one_turn_leaves_in_one_write(house: House) -> None:
    _, line = house.join("EURUSD", "XAUUSD")
    house.say("a", "b")
    house.say("c", topic="XAUUSD")
    assert line.writes == []
    house.turn()
    assert line.writes == [frame(b"a") + frame(b"b") + frame(b"c")]


def test_the_next_turn_is_another_write(house: House) -> None:
    _, line = house.join("EURUSD")
    for text in ("a", "b"):
        house.say(text)
        house.turn()
    assert line.writes == [frame(b"a"), frame(b"b")]


def test_each_hears_its_own_topics_in_the_order_they_were_published(house: House) -> None:
    _, euro = house.join("EURUSD")
    _, gold = house.join("XAUUSD")
    _, both = house.join("XAUUSD", "EURUSD")
    for text, topic in (("a", "EURUSD"), ("b", "XAUUSD"), ("c", "EURUSD")):
        house.say(text, topic=topic)
    house.turn()
    assert (euro.heard, gold.heard, both.heard) == (["a", "c"], ["b"], ["a", "b", "c"])


def test_the_same_bytes_go_to_all_with_the_same_subscriptions() -> None:
    house = House()
    lines = [house.join("EURUSD", "XAUUSD")[1] for _ in range(3)]
    house.say("a", "b")
    house.turn()
    assert len({id(line.writes[0]) for line in lines}) == 1


def test_a_message_is_encoded_once_for_each_variant_that_somebody_wants(house: House) -> None:
    plain = [house.join("EURUSD")[1] for _ in range(2)]
    _, numbered = house.join("EURUSD", variant=1)
    house.join("XAUUSD", variant=2)
    message = Said("a")
    house.hub.publish(message, "EURUSD")
    house.turn()
    assert sorted(message.encodings) == [0, 1]
    assert [line.heard for line in (*plain, numbered)] == [["a"], ["a"], ["a:1"]]


def test_a_message_to_several_topics_is_encoded_once(house: House) -> None:
    _, one = house.join("EURUSD")
    _, everything = house.join("*")
    message = Said("a")
    house.hub.publish(message, "EURUSD", "*")
    house.turn()
    assert (message.encodings, one.heard, everything.heard) == ([0], ["a"], ["a"])


def test_what_nobody_hears_is_not_encoded(house: House) -> None:
    subscriber, _ = house.join("EURUSD")
    house.hub.unsubscribe(subscriber, ["EURUSD"])
    message = Said("a")
    house.hub.publish(message, "EURUSD")
    assert message.encodings == []


def test_subscriptions_add_up_and_repeating_one_is_harmless(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    house.hub.subscribe(subscriber, ["XAUUSD", "EURUSD"])
    house.say("a")
    house.say("b", topic="XAUUSD")
    house.turn()
    assert line.heard == ["a", "b"]
    assert subscriber.topics == {"EURUSD", "XAUUSD"}


def test_a_topic_can_change_its_variant(house: House) -> None:
    subscriber, line = house.join("EURUSD", "XAUUSD")
    house.hub.subscribe(subscriber, ["EURUSD"], variant=1)
    house.say("a")
    house.say("b", topic="XAUUSD")
    house.turn()
    assert line.heard == ["a:1", "b"]


def test_a_newcomer_hears_nothing_of_before(house: House) -> None:
    _, early = house.join("EURUSD")
    house.say("a")
    _, late = house.join("EURUSD")
    house.say("b")
    house.turn()
    assert (early.heard, late.heard) == (["a", "b"], ["b"])


def test_who_unsubscribes_still_gets_what_was_published_before(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    house.say("a")
    house.hub.unsubscribe(subscriber, ["EURUSD"])
    house.say("b")
    house.turn()
    assert line.heard == ["a"]


def test_what_is_sent_to_one_comes_between_what_was_and_what_will_be_published(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    _, other = house.join("EURUSD")
    house.say("a")
    subscriber.send(frame(b"reply"))
    house.say("b")
    house.turn()
    assert (line.heard, other.heard) == (["a", "reply", "b"], ["a", "b"])


def test_end_closes_after_what_was_due_and_the_last_word(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    house.say("a")
    house.hub.end(subscriber, 4401, last=frame(b"bye"))
    house.say("b")
    house.turn()
    assert line.heard == ["a"]
    assert line.closed == [(4401, frame(b"bye"))]


def test_nothing_is_written_after_the_connection_ended(house: House) -> None:
    subscriber, line = house.join("EURUSD")
    house.say("a")
    subscriber.ended()
    subscriber.send(frame(b"reply"))
    house.turn()
    assert line.writes == []


@pytest.mark.parametrize("fault", [RuntimeError("closed"), OSError(32, "Broken pipe"), ValueError("odd")])
def test_a_connection_that_fails_at_a_write_leaves_the_others_alone(house: House, fault: Exception) -> None:
    lines = [house.join("EURUSD")[1] for _ in range(3)]
    lines[1].fault = fault
    for text in ("a", "b"):
        house.say(text)
        house.turn()
    assert [line.heard for line in lines] == [["a", "b"], [], ["a", "b"]]
    assert lines[1].is_aborted
    assert house.hub.broken == 1


def test_one_with_symbols_of_its_own_fails_alone_too(house: House) -> None:
    _, gold = house.join("XAUUSD")
    _, line = house.join("EURUSD")
    for text in ("a", "b"):
        house.say(text)
        house.turn()
    line.fault = OSError(32, "Broken pipe")
    house.say("c")
    house.say("d", topic="XAUUSD")
    house.turn()
    assert line.heard == ["a", "b"]
    assert line.is_aborted
    assert gold.heard == ["d"]
    assert house.hub.broken == 1


def test_one_who_leaves_during_a_flush_gets_nothing_after_it() -> None:
    """What is being written is under way: no write of a connection ends another one."""
    house = House()
    _, first = house.join("EURUSD")
    subscriber, second = house.join("EURUSD")
    _, third = house.join("EURUSD")
    first.at_write = subscriber.ended
    for text in ("a", "b"):
        house.say(text)
        house.turn()
    assert (first.heard, second.heard, third.heard) == (["a", "b"], ["a"], ["a", "b"])


def test_one_may_join_and_change_subscriptions_during_a_flush() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    _, gold = house.join("XAUUSD")

    def change() -> None:
        line.at_write = None
        house.hub.unsubscribe(subscriber, ["EURUSD"])
        house.hub.subscribe(subscriber, ["XAUUSD"])
        house.join("EURUSD")

    line.at_write = change
    house.say("a")
    house.say("b", topic="XAUUSD")
    house.turn()
    house.say("c", topic="XAUUSD")
    house.turn()
    assert gold.heard == ["b", "c"]
    assert line.heard == ["a", "c"]


def test_wrote_at_is_the_time_of_the_last_frame(house: House) -> None:
    subscriber, _ = house.join("EURUSD")
    house.turns.now = 3.0
    house.say("a")
    house.turn()
    assert subscriber.wrote_at == 3.0
    house.turns.now = 5.0
    house.hub.subscribe(subscriber, ["XAUUSD"])
    assert subscriber.wrote_at == 3.0
    subscriber.send(frame(b"reply"))
    assert subscriber.wrote_at == 5.0


def test_nothing_is_kept_of_those_who_left(house: House) -> None:
    subscribers = [house.join("EURUSD", f"X{number}", variant=number % 2)[0] for number in range(4)]
    for subscriber in subscribers:
        subscriber.ended()
    assert house.hub.members == 0
