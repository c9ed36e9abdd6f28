"""/ws/candles: each candle when it is closed, equal to that of REST, and its state before on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import time_machine

from core.clock import now_ms
from core.times import iso_s
from market.streams import market_streams
from market.streams import market_streams as streams
from tests.client import Api, Server
from tests.contract.streams.client import CANDLES, Frame, Socket, code_of
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument

MINUTE_MS, DAY_MS = 60_000, 86_400_000
SPANS_MS = {
    "1m": MINUTE_MS,
    "5m": 5 * MINUTE_MS,
    "15m": 15 * MINUTE_MS,
    "1h": 60 * MINUTE_MS,
    "4h": 240 * MINUTE_MS,
    "1d": DAY_MS,
}
ALL = list(SPANS_MS)


@pytest.fixture
def midnight_ms() -> Iterator[int]:
    """It has just been, and time stands still, so that the clock ends nothing beside the ticks."""
    before_ms = now_ms() // DAY_MS * DAY_MS
    with time_machine.travel(before_ms / 1000 + 6, tick=False):
        yield before_ms


@pytest.fixture
def api(service: Server, key: str) -> Iterator[Api]:
    with Api(service, key) as asking:
        yield asking


@pytest.fixture
def look(service: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """What happens when a second is over, and never without it."""
    forming = streams.candles.forming

    async def begin_anew() -> None:
        forming.clear()

    async def look() -> None:
        forming.look()

    assert market_streams.FORMING_S == 1
    monkeypatch.setattr(market_streams, "FORMING_S", 3600.0)
    service.run(begin_anew())
    yield lambda: service.run(look())
    service.run(begin_anew())


def hear_closed(socket: Socket, *timeframes: str) -> list[Frame]:
    """The next closed one of each."""
    heard: dict[str, Frame] = {}
    while set(timeframes) - heard.keys():
        frame = socket.hear()
        if frame.get("closed"):
            heard.setdefault(frame["timeframe"], frame)
    return [heard[timeframe] for timeframe in timeframes]


def test_frame_has_exactly_its_fields_and_comes_at_the_end_of_its_interval(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=ALL)
    first, second, _ = ticker.at(symbol, midnight_ms - 50_000, midnight_ms - 40_000, midnight_ms + 5_000)
    prices = {"open": first.bid, "high": second.bid, "low": first.bid, "close": second.bid}
    for timeframe, frame in zip(ALL, hear_closed(socket, *ALL), strict=True):
        opened_at = iso_s(midnight_ms - SPANS_MS[timeframe])
        assert frame == {
            "symbol": symbol,
            "timeframe": timeframe,
            "candle": {"time": opened_at, **prices, "volume": 2},
            "closed": True,
            "time": midnight_ms,
        }


def test_closed_candle_is_that_of_rest_to_the_byte(
    opened: Open, ticker: Ticker, api: Api, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=ALL)
    ticker.at(symbol, midnight_ms - 70_000, midnight_ms - 30_000, midnight_ms + 5_000)
    heard: dict[str, list[str]] = {timeframe: [] for timeframe in ALL}
    wanted = {"1m": 2, **dict.fromkeys(ALL[1:], 1)}
    while any(len(heard[timeframe]) < number for timeframe, number in wanted.items()):
        text = str(socket.connection.recv())
        heard[text.partition('"timeframe":"')[2].partition('"')[0]].append(text)
    for timeframe, texts in heard.items():
        answered = api.ask(f"/api/market/{symbol}?timeframe={timeframe}&bars=500&closed_only=true").text
        for text in texts:
            candle = text.partition('"candle":')[2].partition(',"closed"')[0]
            assert candle.startswith('{"time":')
            assert candle in answered


def test_timeframes_add_up_and_hold_for_all_symbols(opened: Open, key: str, symbol: str) -> None:
    other = make_instrument(f"B{symbol}").symbol
    socket = opened(CANDLES, key=key)
    assert socket.subscribe(symbol, timeframes=["1h"])["timeframes"] == ["1h"]
    assert socket.subscribe(other, features=["seq"], timeframes=["5m"])["positions"].keys() == {
        *(f"{symbol}/5m", f"{symbol}/1h", f"{other}/5m", f"{other}/1h")
    }
    assert socket.subscribe(other)["timeframes"] == ["5m", "1h"]
    left = {"type": "subscriptions", "symbols": sorted([symbol, other]), "timeframes": ["5m", "1h"]}
    assert socket.ask({"action": "list"}) == left
    # One cannot be left, but all.
    refused = socket.refused({"action": "unsubscribe", "timeframes": ["1h"]})
    assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "timeframes")
    assert socket.ask({"action": "list"}) == left
    assert socket.ask({"action": "unsubscribe"}) == {"type": "unsubscribed", "symbols": []}
    assert socket.subscribe(symbol)["timeframes"] == ["1m"]


def seqs_of(frames: list[Frame]) -> dict[str, list[int]]:
    seqs: dict[str, list[int]] = {}
    for frame in frames:
        seqs.setdefault(frame["timeframe"], []).append(frame["seq"])
    return seqs


def test_each_timeframe_is_numbered_and_resumed_by_itself(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    both, alone = opened(CANDLES, key=key), opened(CANDLES, key=key)
    reply = both.subscribe(symbol, timeframes=["1m", "5m"], features=["seq"])
    minutes, fives = (reply["positions"][f"{symbol}/{each}"] for each in ("1m", "5m"))
    alone.subscribe(symbol, timeframes=["5m"], features=["seq"])
    ticker.at(symbol, *[midnight_ms + number * MINUTE_MS for number in range(12)])
    due = {"1m": [minutes + n for n in range(1, 12)], "5m": [fives + 1, fives + 2]}
    assert seqs_of([both.hear() for _ in range(13)]) == due
    assert seqs_of([alone.hear() for _ in range(2)]) == {"5m": due["5m"]}
    for epoch, position, missed in (
        (reply["epoch"], fives + 1, {"1m": due["1m"], "5m": due["5m"][1:]}),
        ("elsewhere", 1, {"1m": due["1m"][-1:], "5m": due["5m"][-1:]}),
    ):
        again = opened(CANDLES, key=key)
        positions = {f"{symbol}/1m": minutes, f"{symbol}/5m": position}
        resume = {"epoch": epoch, "positions": positions}
        told = again.subscribe(symbol, timeframes=["1m", "5m"], features=["seq"], resume=resume)
        assert told["recovered"] is (epoch == reply["epoch"])
        assert told.get("unrecovered", []) == ([] if told["recovered"] else [*positions])
        assert seqs_of([again.hear() for _ in range(sum(map(len, missed.values())))]) == missed
        assert again.is_open


def test_snapshot_is_the_last_closed_one_of_each_timeframe(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    live = opened(CANDLES, key=key)
    live.subscribe(symbol, timeframes=["5m", "1d"])
    ticker.at(symbol, midnight_ms - 30_000, midnight_ms + 5_000)
    sent = hear_closed(live, "5m", "1d")
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=["5m", "1d"], features=["snapshot"])
    shown = [socket.hear(), socket.hear()]
    assert sorted(shown, key=str) == sorted(sent, key=str)
    socket.subscribe(symbol, timeframes=["1h"])
    assert socket.hear()["timeframe"] == "1h"


def test_forming_comes_on_request_alone_and_at_most_once_a_second(
    opened: Open, ticker: Ticker, api: Api, key: str, symbol: str, look: Callable[[], None]
) -> None:
    plain, asked = opened(CANDLES, key=key), opened(CANDLES, key=key)
    plain.subscribe(symbol, timeframes=["1d"])
    asked.subscribe(symbol, timeframes=["1d"], features=["seq"], events=["forming"])
    for _ in range(2):
        ticker(symbol, 5)
        tick = ticker(symbol, 3)[-1]
        look()
        candle = api.ask(f"/api/market/{symbol}?timeframe=1d").json()["ohlcv"][-1]
        told = {"symbol": symbol, "timeframe": "1d", "closed": False}
        assert asked.hear() == {**told, "candle": candle, "time": tick.time_ms}
    assert plain.is_open


def test_nobody_who_left_keeps_the_forming_ones_going(
    opened: Open, ticker: Ticker, key: str, symbol: str, look: Callable[[], None]
) -> None:
    with opened(CANDLES, key=key) as socket:
        socket.subscribe(symbol, events=["forming"])
        ticker(symbol)
        look()
        assert socket.hear()["closed"] is False
        socket.ask({"action": "unsubscribe"})
    assert streams.candles.forming.is_wanted
    look()
    assert not streams.candles.forming.is_wanted


def test_gap_names_what_the_numbers_are_of(
    service: Server, opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    ticker.at(symbol, midnight_ms, midnight_ms + MINUTE_MS)
    socket = opened(CANDLES, key=key)
    before = socket.subscribe(symbol, timeframes=["1m", "1d"], features=["seq"], events=["forming"])

    async def begin_anew() -> None:
        streams.begin_numbering("anew", ticker.runner.engine.numbers())

    service.run(begin_anew())
    gap = socket.hear_until("gap")
    assert (gap["symbols"], gap["epoch"]) == ([symbol], "anew")
    assert gap["positions"] == before["positions"]
