"""What is told when the numbering begins anew, or a series: to whom, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from market.streams.hub.hub import AT_ONCE
from market.streams.market_streams import NumberedStream
from market.streams.protocol.messages import ALL, MARKET, ORDERFLOW
from market.streams.resume import LastSent
from market.streams.wire import SEQ, OutgoingFrame

from .hubs import HubCase, Price, RecordedConnection

CROWD = AT_ONCE + 100
NOW_MS = 1_795_003_200_000


def named(connection: RecordedConnection) -> list[str]:
    """The type of each frame, or its text."""
    return [
        str(json.loads(text).get("type", "tick")) if text.startswith("{") else text
        for text in connection.heard
    ]


def frames(connection: RecordedConnection) -> list[dict[str, Any]]:
    return [json.loads(text) for text in connection.heard]


def tick(seq: int) -> OutgoingFrame:
    return OutgoingFrame(b'{"symbol":"EURUSD"}', seq, NOW_MS)


@pytest.mark.parametrize(
    ("variant", "heard"),
    [
        (SEQ, ["before dropped 1", f"before×3:{SEQ}", "gap", f"after×4:{SEQ}"]),
        # To those who count nothing it is no gap.
        (0, ["after dropped 2", "after×7"]),
    ],
)
def test_latest_price_of_before_comes_before_the_gap_and_is_in_none_after_it(
    variant: int, heard: list[str]
) -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    _, connection = case.join("EURUSD", variant=variant, latest=True)
    connection.is_full = True
    case.hub.publish(Price("first", 1), "EURUSD")
    case.turn()
    for price in (Price("before", 1), Price("before", 2)):
        case.hub.publish(price, "EURUSD")
    stream.begin("e2", [])
    case.hub.publish(Price("after", 4), "EURUSD")
    connection.read()
    case.turn()
    assert named(connection)[1:] == heard


def test_gap_says_where_each_symbol_goes_on_and_is_made_once_for_the_same_subscriptions() -> None:
    case = HubCase()
    stream = NumberedStream(ORDERFLOW, case.hub)
    euro = [case.join("EURUSD", "NEW", variant=SEQ)[1] for _ in range(9)]
    every = [case.join(ALL, variant=SEQ)[1] for _ in range(9)]
    plain = [case.join("EURUSD")[1] for _ in range(9)]
    stream.begin("e2", [LastSent("EURUSD", 7), LastSent("XAUUSD", 9)])
    for connections, symbols, positions in (
        (euro, ["EURUSD", "NEW"], {"EURUSD": 7, "NEW": 0}),
        (every, [ALL], {"EURUSD": 7, "XAUUSD": 9}),
    ):
        (gap,) = frames(connections[0])
        assert (gap["symbols"], gap["positions"]) == (symbols, positions)
        assert len({id(connection.writes[0]) for connection in connections}) == 1
    assert [connection.heard for connection in plain] == [[]] * 9


def test_crowd_is_told_part_by_part_each_before_the_next_frame_and_of_the_last_numbering() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    connections = [case.join("EURUSD", variant=SEQ)[1] for _ in range(CROWD)]
    stream.begin("e2", [LastSent("EURUSD", 7)])
    assert sum(bool(connection.writes) for connection in connections) == AT_ONCE
    stream.send("EURUSD", tick(8))
    assert stream.recent.positions(["EURUSD"]) == {"EURUSD": 7}
    stream.begin("e3", [LastSent("EURUSD", 2)])
    stream.send("EURUSD", tick(3))
    for _ in range(5):
        case.turn()
    for connection in connections:
        assert named(connection) == ["gap", "gap", "tick"]
        _, gap, last = frames(connection)
        assert (gap["epoch"], gap["positions"], last["seq"]) == ("e3", {"EURUSD": 2}, 3)
    assert stream.recent.positions(["EURUSD"]) == {"EURUSD": 3}


def test_new_series_is_told_to_those_whom_it_concerns_between_its_ticks() -> None:
    case = HubCase()
    stream = NumberedStream(ORDERFLOW, case.hub)
    (_, euro), (_, gold), (_, every) = (case.join(name) for name in ("EURUSD", "XAUUSD", ALL))
    stream.send("EURUSD", tick(1))
    stream.begin_series("EURUSD", None, NOW_MS)
    stream.send("EURUSD", tick(2))
    case.turn()
    for connection in (euro, every):
        assert named(connection) == ["tick", "notice", "tick"]
        notice = frames(connection)[1]
        assert (notice["code"], notice["symbols"]) == ("new_series", ["EURUSD"])
    assert gold.heard == []


def test_crowd_is_told_of_what_is_offered_again_before_its_next_tick() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    connections = [case.join("EURUSD")[1] for _ in range(CROWD)]
    stream.tell_offer("activated", ["EURUSD"])
    stream.send("EURUSD", tick(1))
    for _ in range(3):
        case.turn()
    assert {tuple(named(connection)) for connection in connections} == {("notice", "tick")}


def test_new_series_is_told_also_where_a_gap_comes_before_all_have_heard_of_another() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    connections = [case.join("EURUSD", "XAUUSD")[1] for _ in range(CROWD)]
    stream.begin_series("EURUSD", None, NOW_MS)
    stream.begin_series("XAUUSD", None, NOW_MS)
    stream.begin("e2", [LastSent("EURUSD", 7)])
    for _ in range(5):
        case.turn()
    for connection in connections:
        assert [frame["symbols"] for frame in frames(connection)] == [["EURUSD"], ["XAUUSD"]]
