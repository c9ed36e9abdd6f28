"""Binance's messages, its own and recorded ones, and what it is asked first, as it takes a subscription to
any name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from market.engine.venues.binance import CLOCK, MOST_SYMBOLS, PER_MESSAGE, BinanceReader, venue_symbol
from market.engine.venues.venue_feed import FeedLost
from market.prices.records import Tick
from tests.market.feeds.receivers import RecordingReceiver, Waits, running

from .fakes.binance import FakeBinance
from .fakes.venue import NOON_MS

QUOTE = (
    b'{"stream":"nknusdt@bookTicker","data":{"u":499869768,"s":"NKNUSDT","b":"0.35210000","B":"672.00000000",'
    b'"a":"0.35260000","A":"3199.00000000"}}'
)
TRADE = (
    b'{"stream":"nknusdt@aggTrade","data":{"e":"aggTrade","E":1633998523963,"s":"NKNUSDT","a":15683430,'
    b'"p":"0.35280000","q":"58.00000000","f":19862790,"l":19862790,"T":1633998523963,"m":false,"M":true}}'
)
ACCEPTED = b'{"result":null,"id":1}'
REFUSED = b'{"code":2,"msg":"Invalid request: unknown stream","id":%d}'
WAY_OUT = "an instrument's source can name another symbol, like binance:BTCUSDT"
SHUTDOWN = b'{"e":"serverShutdown","E":1770123456789}'
TRADED_MS = 1_633_998_523_963
RECEIVED_MS = TRADED_MS - 1_000


class Binance:
    """The venue's end of a reader."""

    def __init__(self, *names: str) -> None:
        self.said: list[dict[str, Any]] = []
        self.refused: list[tuple[str, str]] = []
        self.reader = BinanceReader(
            {name: name for name in names or ["NKNUSDT"]},
            lambda reason, what, name="": self.refused.append((reason, what)),
            lambda text: self.said.append(json.loads(text)),
        )
        self.reader.subscribe()
        assert self.said.pop()["params"] == [CLOCK]

    def sends(self, *messages: bytes) -> list[Tick]:
        return [tick for raw in messages for tick in self.reader.read(raw, RECEIVED_MS)]

    @property
    def asked(self) -> list[set[str]]:
        """The names of each request."""
        return [{stream.split("@")[0] for stream in said["params"]} for said in self.said]


@pytest.fixture
async def venue() -> AsyncIterator[FakeBinance]:
    async with FakeBinance() as fake:
        yield fake


def test_best_bid_and_ask_are_numbered_and_wait_for_the_venues_time() -> None:
    binance = Binance()
    assert binance.sends(QUOTE) == []
    clock = b'{"stream":"%s","data":{"e":"24hrMiniTicker","E":%d,"s":"BTCUSDT"}}'
    dated = [Tick("NKNUSDT", 0.3521, 0.3526, TRADED_MS, source_seq=499869768)]
    assert binance.sends(clock % (CLOCK.encode(), TRADED_MS)) == dated
    assert binance.sends(QUOTE) == dated


@pytest.mark.parametrize(("maker", "bought"), [(b'"m":false', 1), (b'"m":true', -1)])
def test_trade_is_a_sale_where_the_buyer_was_the_maker(maker: bytes, bought: int) -> None:
    trade = TRADE.replace(b'"m":false', maker)
    assert Binance().sends(QUOTE, trade)[1:] == [
        Tick("NKNUSDT", 0.3521, 0.3526, TRADED_MS, 58.0, bought, 0.3528, 15683430)
    ]


def test_book_and_trades_are_asked_for_by_small_names() -> None:
    streams = ["btcusdt@bookTicker", "btcusdt@aggTrade", "ethusdt@bookTicker", "ethusdt@aggTrade"]
    assert Binance("BTCUSDT", "ETHUSDT").said == [{"method": "SUBSCRIBE", "params": streams, "id": 1}]


def test_symbols_beyond_what_a_connection_carries_are_left_out_and_told() -> None:
    binance = Binance(*(f"S{number:04}" for number in range(MOST_SYMBOLS + 1)))
    assert sum(len(asked) for asked in binance.asked) == MOST_SYMBOLS == 511
    assert max(len(asked) for asked in binance.asked) == PER_MESSAGE
    assert binance.refused == [("unknown_symbol", "S0511 is left out: a connection carries 511 symbols")]


def test_bad_name_is_found_by_halving_and_told_with_the_way_out() -> None:
    binance = Binance("AUSDT", "BUSDT", "XYZ")
    accepted = b'{"result":null,"id":%d}'
    # A refusal may come as an error beside the id, too.
    last = b'{"error":{"code":2,"msg":"Invalid symbol"},"id":5}'
    binance.sends(REFUSED % 1, accepted % 2, REFUSED % 3, accepted % 4, last)
    assert binance.asked == [{"ausdt", "busdt", "xyz"}, {"ausdt"}, {"busdt", "xyz"}, {"busdt"}, {"xyz"}]
    assert binance.refused == [("unknown_symbol", f"XYZ is not served: Invalid symbol; {WAY_OUT}")]


@pytest.mark.parametrize("message", [REFUSED % 9, b'{"code":3,"msg":"Invalid JSON"}', b'{"hello":1}'])
def test_answer_to_nothing_that_was_asked_makes_no_sense(message: bytes) -> None:
    with pytest.raises(ValueError, match="what was refused|neither"):
        Binance().sends(message)


def test_answers_are_signs_of_life() -> None:
    binance = Binance()
    binance.reader.probe()
    assert binance.sends(ACCEPTED, b'{"result":["nknusdt@aggTrade"],"id":0}') == []
    assert binance.said[-1] == {"method": "LIST_SUBSCRIPTIONS", "id": 0}
    assert binance.refused == []


@pytest.mark.parametrize("message", [SHUTDOWN, b'{"stream":"","data":%s}' % SHUTDOWN])
def test_server_that_will_shut_down_is_left_at_once(message: bytes) -> None:
    with pytest.raises(FeedLost, match="shuts this server down"):
        Binance().sends(message)


def test_dollars_are_tethers() -> None:
    names = {"BTCUSD": "BTCUSDT", "BTCUSDT": "BTCUSDT", "ETHBTC": "ETHBTC", "BNBUSD": "BNBUSDT"}
    names |= {"SHIBUSD": "SHIBUSDT", "OMGBUSD": "OMGBUSD", "BTCFDUSD": "BTCFDUSD"}
    assert {name: venue_symbol(name) for name in names} == names


async def test_only_names_that_it_has_are_subscribed_to_and_the_others_told(venue: FakeBinance) -> None:
    receiver, symbols = RecordingReceiver(), {f"S{number}": f"S{number}USDT" for number in range(9)}
    venue.unknown = {"S3USDT", "S7USDT"}
    async with running(venue.make_feed(symbols), receiver):
        visit = await venue.visited(names=7)
        await venue.send(venue.quote("S1USDT", 1.0, 1.1, NOON_MS))
        await receiver.until_ticks(1)

    assert visit.asked == set(symbols.values()) - venue.unknown
    assert sorted(receiver.complaints) == [
        f"{name} is not served: the answer was 400: Invalid symbol; {WAY_OUT}"
        for name in ("S3USDT", "S7USDT")
    ]
    assert receiver.refused == {"unknown_symbol": 2}


async def test_a_name_with_other_letters_is_told_too(venue: FakeBinance) -> None:
    receiver = RecordingReceiver()
    async with running(venue.make_feed({"BTCUSD": "BTC/USDT", "EURUSD": "EURUSDT"}), receiver):
        assert (await venue.visited(names=1)).asked == {"EURUSDT"}
    assert receiver.complaints[0].startswith("BTC/USDT is not served: the answer was 400: Illegal characters")


async def test_a_symbol_that_rests_is_told_and_followed_for_when_it_trades_again(venue: FakeBinance) -> None:
    receiver = RecordingReceiver()
    venue.statuses = {"PAXGUSDT": "BREAK"}
    async with running(venue.make_feed(), receiver):
        assert (await venue.visited(names=2)).asked == {"EURUSDT", "PAXGUSDT"}
    assert receiver.complaints == ["PAXGUSDT is listed, but not traded there now: its status is BREAK"]


async def test_where_none_is_known_nothing_is_subscribed_to_and_the_loss_says_so(venue: FakeBinance) -> None:
    receiver = RecordingReceiver()
    venue.unknown = {"EURUSDT", "PAXGUSDT"}
    async with running(venue.make_feed(sleep=Waits()), receiver):
        await receiver.until_lost()
    assert receiver.losses == ["Binance has none of the instruments; see their sources"]
    assert venue.visit.asked == set()


async def test_where_it_cannot_be_asked_all_are_followed(venue: FakeBinance) -> None:
    venue.has_broken_history = True
    async with running(venue.make_feed(), RecordingReceiver()):
        assert (await venue.visited(names=2)).asked == {"EURUSDT", "PAXGUSDT"}


async def test_hundreds_of_names_are_asked_for_in_few_requests(venue: FakeBinance) -> None:
    venue.unknown = {"S77USDT"}
    symbols = {f"S{number}": f"S{number}USDT" for number in range(250)}
    async with running(venue.make_feed(symbols), RecordingReceiver()):
        await venue.visited(names=249)
    assert len(venue.looked_up) <= 3 + 2 * 7
