"""A hub that streams share: each has topics of its own there, and its name in its frames."""

from __future__ import annotations

from market.streams.hub.share import Share
from serving.websocket.connection import frame

from .hubs import HubCase, Price, TextPublication

EURO, GOLD = "EURUSD", "XAUUSD"


def named(stream: str, text: str) -> str:
    return f'{{"stream":"{stream}",{text}'


def test_frame_is_made_once_for_all_followers_of_a_variant_and_not_at_all_without() -> None:
    case = HubCase()
    market, flow = Share(case.hub, "market"), Share(case.hub, "orderflow")
    joined = [case.join() for _ in range(4)]
    for number, (subscriber, _) in enumerate(joined):
        market.subscribe(subscriber, [EURO], variant=number % 2)
    heard, unheard = TextPublication("{a}"), TextPublication("{b}")
    market.publish(heard, EURO)
    for share, topic in ((market, GOLD), (flow, EURO)):
        share.publish(unheard, topic)
    case.turn()
    assert [connection.heard for _, connection in joined] == [
        [named("market", "a}")],
        [named("market", "a}:1")],
    ] * 2
    assert (sorted(heard.encodings), unheard.encodings) == ([0, 1], [])


def test_streams_come_and_go_apart_and_only_those_in_the_variant_are_notified() -> None:
    case = HubCase()
    market, flow = Share(case.hub, "market"), Share(case.hub, "orderflow")
    subscriber, connection = case.join()
    market.subscribe(subscriber, [EURO, GOLD], variant=1)
    flow.subscribe(subscriber, [EURO], variant=2)
    market.subscribe(subscriber, [GOLD], variant=1)
    assert (market.topics_of(subscriber), flow.topics) == (frozenset({GOLD}), frozenset({EURO}))
    for share in (market, flow):
        share.notify(lambda topics: b"{" + ",".join(topics).encode(), variant=1)
        share.publish(TextPublication("{a"), EURO)
    case.turn()
    assert connection.heard == [named("market", GOLD), named("orderflow", "a:2")]
    market.subscribe(subscriber, [])
    assert case.hub.topics == {f"orderflow:{EURO}"}


def test_latest_leaves_out_prices_alone() -> None:
    case = HubCase()
    market, flow = Share(case.hub, "market"), Share(case.hub, "orderflow")
    subscriber, connection = case.join(latest=True)
    market.subscribe(subscriber, [EURO])
    flow.subscribe(subscriber, [EURO])
    connection.is_full = True
    subscriber.send(frame(b"first"))
    for number in range(3):
        market.publish(Price(f"{{{number}", 1), EURO)
        flow.publish(TextPublication(f"{{{number}"), EURO)
        case.turn()
    connection.read()
    case.turn()
    assert connection.heard[1:] == [
        *(named("orderflow", str(number)) for number in range(3)),
        named("market", "2 dropped 2"),
        named("market", "2×3"),
    ]
