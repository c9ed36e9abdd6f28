"""What is told when the numbering begins anew, or a series: to whom, and in which order."""

from __future__ import annotations

import json

from market.streams.hub.hub import AT_ONCE
from market.streams.protocol.messages import ALL, MARKET, ORDERFLOW
from market.streams.resume import LastSent
from market.streams.stream import NumberedStream
from market.streams.wire import SEQ, OutgoingFrame

from .hubs import HubCase, Price, RecordedConnection

CROWD = AT_ONCE + 100
NOW_MS = 1_795_003_200_000


def heard_around_a_gap(variant: int) -> list[str]:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    subscriber, connection = case.join("EURUSD", variant=variant, latest=True)
    connection.is_full = True
    case.hub.publish(Price("first", 1), "EURUSD")
    case.turn()
    for price in (Price("before", 1), Price("before", 2)):
        case.hub.publish(price, "EURUSD")
    stream.begin("e2", [])
    case.hub.publish(Price("after", 4), "EURUSD")
    connection.read()
    case.turn()
    return [named(text) for text in connection.heard[1:]]


def named(text: str) -> str:
    return str(json.loads(text)["type"]) if text.startswith("{") else text


def test_latest_price_of_before_comes_before_the_gap_and_is_in_none_after_it() -> None:
    heard = heard_around_a_gap(SEQ)
    assert heard == ["before dropped 1", f"before×3:{SEQ}", "gap", f"after×4:{SEQ}"]


def test_who_counts_nothing_gets_the_latest_alone() -> None:
    assert heard_around_a_gap(0) == ["after dropped 2", "after×7"]


def frames(connection: RecordedConnection) -> list[dict[str, object]]:
    return [json.loads(text) for text in connection.heard]


def tick(seq: int) -> OutgoingFrame:
    return OutgoingFrame(b'{"symbol":"EURUSD"}', seq, NOW_MS)


def test_gap_says_where_each_symbol_goes_on() -> None:
    case = HubCase()
    stream = NumberedStream(ORDERFLOW, case.hub)
    (_, named), (_, every) = case.join("EURUSD", "NEW", variant=SEQ), case.join(ALL, variant=SEQ)
    stream.begin("e2", [LastSent("EURUSD", 7), LastSent("XAUUSD", 9)])
    assert [frame["positions"] for frame in frames(named)] == [{"EURUSD": 7, "NEW": 0}]
    assert [frame["positions"] for frame in frames(every)] == [{"EURUSD": 7, "XAUUSD": 9}]
    assert [frame["symbols"] for frame in frames(every)] == [[ALL]]


def test_crowd_is_told_part_by_part_and_each_before_the_next_frame() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    connections = [case.join("EURUSD", variant=SEQ)[1] for _ in range(CROWD)]
    stream.begin("e2", [LastSent("EURUSD", 7)])
    told = sum(bool(connection.writes) for connection in connections)
    stream.send("EURUSD", tick(8))
    assert stream.recent.positions(["EURUSD"]) == {"EURUSD": 7}
    for _ in range(3):
        case.turn()
    assert told == AT_ONCE
    assert {
        tuple(named(text) if "type" in text else "tick" for text in connection.heard)
        for connection in connections
    } == {("gap", "tick")}
    assert stream.recent.positions(["EURUSD"]) == {"EURUSD": 8}


def test_gap_is_made_once_for_all_with_the_same_subscriptions_and_for_nobody_else() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    euro = [case.join("EURUSD", variant=SEQ)[1] for _ in range(9)]
    gold = [case.join("XAUUSD", variant=SEQ)[1] for _ in range(9)]
    plain = [case.join("XAUUSD")[1] for _ in range(9)]
    stream.begin("e2", [])
    assert [
        len({id(connection.writes[0]) for connection in connections}) for connections in (euro, gold)
    ] == [1, 1]
    assert [connection.heard for connection in plain] == [[]] * 9


def test_second_gap_before_all_heard_the_first_ends_with_the_last_numbering() -> None:
    case = HubCase()
    stream = NumberedStream(MARKET, case.hub)
    connections = [case.join("EURUSD", variant=SEQ)[1] for _ in range(CROWD)]
    stream.begin("e2", [LastSent("EURUSD", 7)])
    stream.send("EURUSD", tick(8))
    stream.begin("e3", [LastSent("EURUSD", 2)])
    stream.send("EURUSD", tick(3))
    for _ in range(5):
        case.turn()
    for connection in connections:
        *gaps, last = frames(connection)
        assert (gaps[-1]["epoch"], gaps[-1]["positions"]) == ("e3", {"EURUSD": 2})
        assert last["seq"] == 3
        assert len(gaps) == 2


def test_new_series_is_told_to_those_whom_it_concerns_between_its_ticks() -> None:
    case = HubCase()
    stream = NumberedStream(ORDERFLOW, case.hub)
    (_, euro), (_, gold), (_, every) = (case.join(name) for name in ("EURUSD", "XAUUSD", ALL))
    stream.send("EURUSD", tick(1))
    stream.begin_series("EURUSD", None, NOW_MS)
    stream.send("EURUSD", tick(2))
    case.turn()
    for connection in (euro, every):
        assert [named(text) if "type" in text else "tick" for text in connection.heard] == [
            "tick",
            "notice",
            "tick",
        ]
        notice = frames(connection)[1]
        assert (notice["code"], notice["symbols"]) == ("new_series", ["EURUSD"])
    assert gold.heard == []


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
