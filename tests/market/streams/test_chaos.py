from __future__ import annotations

import pytest

from instruments.facts import TEST_SYMBOL
from market.prices.records import TickAccepted
from market.streams.chaos import TopicFaults, copies
from market.streams.hub.hub import Hub
from market.streams.protocol.messages import CHAOS, Chaos
from market.streams.wire import OutgoingPrice
from tests.market.streams.hub.hubs import HubCase, RecordedConnection

NOW_MS = 1_795_000_020_000


def make_frame(seq: int, sent_ms: int = NOW_MS) -> OutgoingPrice:
    return OutgoingPrice(TickAccepted(TEST_SYMBOL, 1.0, 1.1, sent_ms, 1.0, seq), 2, sent_ms)


@pytest.mark.parametrize(
    ("faults", "sent"),
    [
        ([], [1, 1, 1, 1]),
        (["chaos:gap"], [0, 1, 1, 0]),
        (["chaos:duplicate"], [1, 2, 1, 1]),
        (["chaos:gap", "chaos:duplicate"], [0, 2, 1, 0]),
        (["chaos:burst"], [1, 1, 1, 1]),
    ],
)
def test_number_of_a_frame_says_how_often_it_is_sent(faults: list[Chaos], sent: list[int]) -> None:
    assert [copies(faults, seq, NOW_MS) for seq in (10, 15, 16, 20)] == sent


def test_stale_sends_nothing_in_the_second_half_of_each_30_seconds() -> None:
    start = NOW_MS - NOW_MS % 30_000
    sent = [copies(["chaos:stale"], 1, start + at) for at in (0, 14_999, 15_000, 29_999, 30_000)]
    assert sent == [1, 1, 0, 0, 1]


def make_listeners(*wishes: set[Chaos]) -> tuple[HubCase, TopicFaults, list[RecordedConnection]]:
    case = HubCase()
    faults = TopicFaults(case.hub)
    return case, faults, [case.join(*faults.topics([TEST_SYMBOL], wish))[1] for wish in wishes]


def test_burst_sends_20_in_one_write_to_who_asked_alone() -> None:
    case, faults, listeners = make_listeners({"chaos:burst"}, set())
    counts = []
    for seq in range(1, 42):
        case.hub.publish(make_frame(seq), TEST_SYMBOL)
        faults.send(make_frame(seq))
        case.turn()
        counts.append([len(connection.heard) for connection in listeners])
    assert counts == [[seq // 20 * 20, seq] for seq in range(1, 42)]


def test_newcomer_is_not_sent_what_was_held_back_and_a_topic_that_all_left_nothing() -> None:
    case, faults, (first,) = make_listeners({"chaos:burst"})
    faults.send(make_frame(1))
    _, later = case.join(*faults.topics([TEST_SYMBOL], {"chaos:burst"}))
    case.turn()
    assert (len(first.heard), later.heard) == (1, [])
    gone, connection = case.join(*faults.topics([TEST_SYMBOL], {"chaos:gap"}))
    case.hub.leave(gone)
    faults.send(make_frame(1))
    case.turn()
    assert connection.heard == []


def test_only_the_test_instrument_gets_another_topic() -> None:
    topics = TopicFaults(Hub()).topics
    assert topics(["EURUSD", TEST_SYMBOL], set(CHAOS) | {"seq"}) == {
        "EURUSD",
        "TEST/chaos:gap,chaos:duplicate,chaos:stale,chaos:burst",
    }
    assert topics(["EURUSD"], set(CHAOS)) == {"EURUSD"}
    assert topics(["*"], set(CHAOS)) == {"*"}
