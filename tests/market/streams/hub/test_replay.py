"""A long replay goes out as its client reads, and what is published meanwhile follows it."""

from __future__ import annotations

from collections.abc import Iterator

from market.streams.hub.backlog import MOST_FRAMES
from market.streams.hub.slow_readers import FEW, replay
from serving.websocket.framing import frame

from .hubs import House, Line, Price

# More than may wait for a slow reader, in frames and in bytes.
MANY = 2 * MOST_FRAMES
TEXT = "x" * 1_000


def frames(count: int, text: str = "old") -> Iterator[bytes]:
    return (frame(f"{text}{number}".encode()) for number in range(count))


def read_all(house: House, line: Line) -> None:
    while line.is_full or line.waiting:
        line.read()
        house.turn()
    house.turn()


def names(count: int, text: str = "old") -> list[str]:
    return [f"{text}{number}" for number in range(count)]


def test_few_frames_are_written_at_once() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    replay(house.hub.slow, subscriber, frames(FEW - 1))
    assert line.heard == names(FEW - 1)
    assert subscriber.backlog is None


def test_many_come_before_what_is_published_meanwhile() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    replay(house.hub.slow, subscriber, frames(MANY))
    house.say("new")
    house.turn()
    house.turn()
    assert line.heard == [*names(MANY), "new"]
    assert subscriber.backlog is None


def test_client_that_reads_on_is_not_given_up_for_what_is_replayed() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    replay(house.hub.slow, subscriber, frames(MANY, TEXT))
    house.say("new")
    house.turn()
    assert len(line.heard) < MANY
    read_all(house, line)
    assert (line.heard, house.slow) == ([*names(MANY, TEXT), "new"], [])


def test_who_asks_again_before_it_has_read_is_given_up() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    replay(house.hub.slow, subscriber, frames(MANY, TEXT))
    replay(house.hub.slow, subscriber, frames(MANY, TEXT))
    house.turn()
    assert not subscriber.is_open
    assert len(house.slow) == 1


def test_made_only_as_they_are_due() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    made = list[bytes]()
    line.is_full = True
    replay(house.hub.slow, subscriber, (made.append(data) or data for data in frames(MANY, TEXT)))  # type: ignore[func-returns-value]
    house.turn()
    assert len(made) < MANY / 10


def test_what_is_published_meanwhile_keeps_its_bound() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    replay(house.hub.slow, subscriber, frames(MANY))
    for _ in range(MOST_FRAMES + 1):
        house.say("new")
    house.turn()
    house.turn()
    assert house.slow == [line]


def test_client_that_stops_reading_a_replay_is_given_up() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    replay(house.hub.slow, subscriber, frames(MANY))
    house.turns.wait(6)
    assert house.slow == [line]


def test_what_waited_before_goes_first() -> None:
    house = House()
    subscriber, line = house.join("EURUSD")
    line.is_full = True
    house.say("first")
    house.turn()
    house.say("waits")
    house.turn()
    replay(house.hub.slow, subscriber, frames(MANY))
    house.say("new")
    house.turn()
    read_all(house, line)
    assert line.heard == ["first", "waits", *names(MANY), "new"]


def test_latest_price_follows_the_replay() -> None:
    house = House()
    subscriber, line = house.join("EURUSD", latest=True)
    line.is_full = True
    replay(house.hub.slow, subscriber, frames(MANY))
    for name in ("a", "b", "c"):
        house.hub.publish(Price(name, 1), "EURUSD")
    house.turn()
    read_all(house, line)
    assert line.heard == [*names(MANY), "c dropped 2", "c×3"]


def test_unsubscribed_price_that_waited_before_the_replay_does_not_come() -> None:
    house = House()
    subscriber, line = house.join("EURUSD", "XAUUSD", latest=True)
    line.is_full = True
    house.say("first")
    house.turn()
    for topic in ("EURUSD", "XAUUSD"):
        house.hub.publish(Price(topic, 1), topic)
    replay(house.hub.slow, subscriber, frames(MANY))
    house.hub.unsubscribe(subscriber, ["EURUSD"])
    house.turn()
    read_all(house, line)
    assert set(line.heard) == {"first", "XAUUSD×1", *names(MANY)}
