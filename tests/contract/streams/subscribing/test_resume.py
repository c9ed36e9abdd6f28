"""Coming back: what was missed is replayed, whole or not at all."""

from __future__ import annotations

import random
import threading
from typing import Any

from market.streams import market_streams as streams
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Frame, Socket
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_instrument, make_key, make_tier


def resume(epoch: str, **positions: int) -> dict[str, Any]:
    return {"features": ["seq"], "resume": {"epoch": epoch, "positions": positions}}


def left_at(opened: Open, key: str, symbol: str, path: str = MARKET) -> tuple[str, int]:
    """The place of a client that had one frame and went away."""
    socket = opened(path, key=key)
    reply = socket.subscribe(symbol, features=["seq", "snapshot"])
    socket.connection.close()
    return reply["epoch"], reply["positions"][symbol]


def test_what_was_missed_follows_in_order_and_then_the_new(
    opened: Open, ticker: Ticker, key: str, tick_path: str, symbol: str
) -> None:
    ticker(symbol, 2)
    epoch, last = left_at(opened, key, symbol, tick_path)
    ticker(symbol, 5)
    socket = opened(tick_path, key=key)
    reply = socket.subscribe(symbol, **resume(epoch, **{symbol: last}))
    ticker(symbol, 2)
    assert (reply["recovered"], reply["positions"]) == (True, {symbol: last})
    assert socket.hear_of(7, "seq") == list(range(last + 1, last + 8))
    # Who missed nothing gets nothing twice.
    again = opened(tick_path, key=key)
    assert again.subscribe(symbol, **resume(epoch, **{symbol: last + 7}))["recovered"] is True
    assert again.is_open
    if tick_path == ORDERFLOW:
        everything = opened(tick_path, key=key)
        assert everything.subscribe(**resume(epoch, **{symbol: last + 5}))["recovered"] is True
        assert everything.hear_of(2, "seq") == [last + 6, last + 7]


def test_symbols_are_recovered_whole_or_not_at_all_each_by_itself_or_start_live(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    other, much, live = (make_instrument(f"{name}{symbol}").symbol for name in ("OTHER", "MUCH", "LIVE"))
    for name in (symbol, other, much, live):
        ticker(name)
    epoch, last = left_at(opened, key, symbol)
    ticker(much, 1_001)
    ticker(symbol)
    socket = opened(key=key)
    place = resume(epoch, **{symbol: last, other: last + 98, much: 1})
    reply = socket.subscribe(symbol, other, much, live, **place)
    assert (reply["recovered"], reply["unrecovered"]) == (False, sorted([other, much]))
    assert reply["positions"] == {symbol: last, other: 1, much: 1_002, live: 1}
    ticker(live)
    heard = [socket.hear() for _ in range(4)]
    assert {(each["symbol"], each["seq"]) for each in heard[:3]} == {
        (other, 1),
        (much, 1_002),
        (symbol, last + 1),
    }
    assert (heard[3]["symbol"], heard[3]["seq"]) == (live, 2)
    assert socket.is_open


def test_other_epoch_brings_the_last_tick_alone(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    ticker(symbol, 3)
    socket = opened(key=key)
    reply = socket.subscribe(symbol, **resume("elsewhere", **{symbol: 2}))
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])
    assert socket.hear()["seq"] == reply["positions"][symbol] == 3
    assert socket.is_open


def test_instrument_newer_than_the_numbering_is_recovered_from_its_first_tick(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    epoch, last = left_at(opened, key, symbol)
    assert last == 0
    socket = opened(key=key)
    assert socket.subscribe(symbol, **resume(epoch, **{symbol: 0}))["recovered"] is True
    ticker(symbol)
    assert socket.hear()["seq"] == 1


def test_resume_without_seq_is_replayed_without_numbers(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    ticker(symbol)
    epoch, last = left_at(opened, key, symbol)
    tick = ticker(symbol)[0]
    socket = opened(key=key)
    reply = socket.subscribe(symbol, resume={"epoch": epoch, "positions": {symbol: last}})
    assert (reply["recovered"], "epoch" in reply) == (True, False)
    heard = socket.hear()
    assert (heard["bid"], "seq" in heard) == (tick.bid, False)


def test_long_replay_is_no_slowness(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    """Twelve thousand frames are more than may wait for a slow reader."""
    names = [make_instrument(f"LONG{number}{symbol}").symbol for number in range(12)]
    for name in names:
        ticker(name)
    epoch, _ = left_at(opened, key, symbol)
    for name in names:
        ticker(name, 999)
    socket = opened(key=key)
    socket.send(
        {"action": "subscribe", "symbols": names, **resume(epoch, **dict.fromkeys(names, 1)), "id": 1}
    )
    for name in names:
        ticker(name)
    heard = socket.hear()
    assert heard["recovered"] is True
    seqs: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(12 * 1_000):
        frame = socket.hear()
        seqs[frame["symbol"]].append(frame["seq"])
    assert all(numbers == list(range(2, 1_002)) for numbers in seqs.values())
    assert socket.is_open


def test_gap_is_told_to_those_who_count(service: Server, opened: Open, key: str, symbol: str) -> None:
    numbered, plain = opened(key=key), opened(key=key)
    numbered.subscribe(symbol, features=["seq"])
    plain.subscribe(symbol)

    async def begin_anew() -> None:
        epoch = streams.prices.recent.epoch
        streams.prices.begin("anew", [])
        streams.prices.begin(epoch, [])

    service.run(begin_anew())
    told = numbered.hear()
    assert told.keys() == {"type", "symbols", "epoch", "positions", "time"}
    assert (told["type"], told["symbols"], told["epoch"]) == ("gap", [symbol], "anew")
    assert told["positions"] == {symbol: 0}
    assert plain.is_open


class Ledger:
    """A client that is cut off again and again, and comes back with its positions."""

    def __init__(self, service: Server, names: list[str]) -> None:
        self._service, self._names = service, names
        self._key = make_key(make_account(tier=make_tier("roomy")))
        self.heard: dict[str, list[int]] = {name: [] for name in names}
        self.epoch, self.positions = "", dict[str, int]()

    @property
    def count(self) -> int:
        return sum(map(len, self.heard.values()))

    def session(self, frames: int) -> None:
        """Hears some frames and drops the connection without a word, with others under way."""
        again = resume(self.epoch, **self.positions) if self.epoch else {"features": ["seq"]}
        socket = Socket(self._service, key=self._key)
        reply = socket.subscribe(*self._names, takeover=True, **again)
        assert reply.get("recovered", True) is True
        self.epoch, self.positions = reply["epoch"], self.positions or reply["positions"]
        for _ in range(frames):
            self._keep(socket.hear())
        socket.connection.socket.close()

    def _keep(self, frame: Frame) -> None:
        self.heard[frame["symbol"]].append(frame["seq"])
        self.positions[frame["symbol"]] = frame["seq"]


def test_sessions_cut_at_random_points_add_up_to_the_source(
    service: Server, ticker: Ticker, symbol: str
) -> None:
    dice = random.Random(20_261_121)
    names = [make_instrument(f"CUT{number}{symbol}").symbol for number in range(3)]
    for name in names:
        ticker(name)
    ledger = Ledger(service, names)
    ledger.session(0)
    sent = dice.choices(names, k=2_000)
    source = threading.Thread(target=ticker.hasty, args=[sent])
    source.start()
    while ledger.count < len(sent):
        ledger.session(min(dice.randint(0, 60), len(sent) - ledger.count))
    source.join()
    for name, numbers in ledger.heard.items():
        assert numbers == list(range(2, sent.count(name) + 2))
