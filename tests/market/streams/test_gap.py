"""What waits for a slow client when the numbering begins anew."""

from __future__ import annotations

import json

from market.consumers import MarketConsumer
from market.streams.framing import frame
from market.streams.messages import Subscribe, Wish
from market.streams.seat import Seat
from tests.market.streams.hubs import House, Line, Price


class Seated(MarketConsumer):
    """One whose subscribe has been answered."""

    def __init__(self, seat: Seat, *features: Wish) -> None:
        super().__init__()
        self._seat = seat
        wanted = Subscribe(symbols=["EURUSD"], features=frozenset(features))
        self._subscriptions.subscribe(wanted, lambda symbol: True)


def heard_around_a_gap(*features: Wish) -> list[str]:
    house = House()
    seat, line = house.join("EURUSD", latest=True)
    line.is_full = True
    seat.send(frame(b"first"))
    for price in (Price("before", 1), Price("before", 2)):
        house.hub.publish(price, "EURUSD")
    Seated(seat, *features).lost_place("e2")
    house.hub.publish(Price("after", 4), "EURUSD")
    return [named(text) for text in read_all(house, line)]


def read_all(house: House, line: Line) -> list[str]:
    line.read()
    house.turn()
    return line.heard[1:]


def named(text: str) -> str:
    return str(json.loads(text)["type"]) if text.startswith("{") else text


def test_latest_price_of_before_comes_before_the_gap_and_is_in_none_after_it() -> None:
    heard = heard_around_a_gap("seq", "latest")
    assert heard == ["before dropped 1", "before×3", "gap", "after×4"]


def test_who_counts_nothing_gets_the_latest_alone() -> None:
    assert heard_around_a_gap("latest") == ["after dropped 2", "after×7"]
