"""A long replay goes out as its client reads, and what is published meanwhile follows it."""

from __future__ import annotations

from collections.abc import Iterator

from market.streams.hub.backlog import MOST_FRAMES
from market.streams.hub.slow_readers import FEW, replay
from serving.websocket.framing import frame

from .hubs import HubCase, Price, RecordedConnection

# More than may wait for a slow reader, in frames and in bytes.
MANY = 2 * MOST_FRAMES
TEXT = "x" * 1_000


def frames(count: int, text: str = "old") -> Iterator[bytes]:
    return (frame(f"{text}{number}".encode()) for number in range(count))


def read_all(case: HubCase, connection: RecordedConnection) -> None:
    while connection.is_full or connection.waiting:
        connection.read()
        case.turn()
    case.turn()


def names(count: int, text: str = "old") -> list[str]:
    return [f"{text}{number}" for number in range(count)]


def test_few_frames_are_written_at_once() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    replay(case.hub.slow, subscriber, frames(FEW - 1))
    assert connection.heard == names(FEW - 1)
    assert subscriber.backlog is None


def test_many_come_before_what_is_published_meanwhile() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    replay(case.hub.slow, subscriber, frames(MANY))
    case.say("new")
    case.turn()
    case.turn()
    assert connection.heard == [*names(MANY), "new"]
    assert subscriber.backlog is None


def test_client_that_reads_on_is_not_given_up_for_what_is_replayed() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    replay(case.hub.slow, subscriber, frames(MANY, TEXT))
    case.say("new")
    case.turn()
    assert len(connection.heard) < MANY
    read_all(case, connection)
    assert (connection.heard, case.slow) == ([*names(MANY, TEXT), "new"], [])


def test_who_asks_again_before_it_has_read_is_given_up() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    replay(case.hub.slow, subscriber, frames(MANY, TEXT))
    replay(case.hub.slow, subscriber, frames(MANY, TEXT))
    case.turn()
    assert not subscriber.is_open
    assert len(case.slow) == 1


def test_made_only_as_they_are_due() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    made = list[bytes]()
    connection.is_full = True
    replay(case.hub.slow, subscriber, (made.append(data) or data for data in frames(MANY, TEXT)))  # type: ignore[func-returns-value]
    case.turn()
    assert len(made) < MANY / 10


def test_what_is_published_meanwhile_keeps_its_bound() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    replay(case.hub.slow, subscriber, frames(MANY))
    for _ in range(MOST_FRAMES + 1):
        case.say("new")
    case.turn()
    case.turn()
    assert case.slow == [connection]


def test_client_that_stops_reading_a_replay_is_given_up() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    replay(case.hub.slow, subscriber, frames(MANY))
    case.turns.wait(6)
    assert case.slow == [connection]


def test_what_waited_before_goes_first() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD")
    connection.is_full = True
    case.say("first")
    case.turn()
    case.say("waits")
    case.turn()
    replay(case.hub.slow, subscriber, frames(MANY))
    case.say("new")
    case.turn()
    read_all(case, connection)
    assert connection.heard == ["first", "waits", *names(MANY), "new"]


def test_latest_price_follows_the_replay() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD", latest=True)
    connection.is_full = True
    replay(case.hub.slow, subscriber, frames(MANY))
    for name in ("a", "b", "c"):
        case.hub.publish(Price(name, 1), "EURUSD")
    case.turn()
    read_all(case, connection)
    assert connection.heard == [*names(MANY), "c dropped 2", "c×3"]


def test_unsubscribed_price_that_waited_before_the_replay_does_not_come() -> None:
    case = HubCase()
    subscriber, connection = case.join("EURUSD", "XAUUSD", latest=True)
    connection.is_full = True
    case.say("first")
    case.turn()
    for topic in ("EURUSD", "XAUUSD"):
        case.hub.publish(Price(topic, 1), topic)
    replay(case.hub.slow, subscriber, frames(MANY))
    case.hub.subscribe(subscriber, ["XAUUSD"])
    case.turn()
    read_all(case, connection)
    assert set(connection.heard) == {"first", "XAUUSD×1", *names(MANY)}
