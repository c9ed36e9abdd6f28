"""/ws/candles: each candle when it is closed, equal to that of REST, and its state before on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine

from accounts.models import Account
from core.clock import now_ms
from core.times import iso_s
from market.streams import candle_stream
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
FIELDS = {"symbol", "timeframe", "candle", "closed", "time"}


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

    assert candle_stream.FORMING_S == 1
    monkeypatch.setattr(candle_stream, "FORMING_S", 3600.0)
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


def seqs_of(frames: list[Frame], timeframe: str) -> list[int]:
    return [frame["seq"] for frame in frames if frame["timeframe"] == timeframe]


def resume(epoch: str, positions: dict[str, int]) -> dict[str, Any]:
    return {"features": ["seq"], "resume": {"epoch": epoch, "positions": positions}}


def test_frame_has_exactly_its_fields(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol)
    first, second, _ = ticker.at(symbol, midnight_ms - 50_000, midnight_ms - 40_000, midnight_ms + 5_000)
    assert socket.hear() == {
        "symbol": symbol,
        "timeframe": "1m",
        "candle": {
            "time": iso_s(midnight_ms - MINUTE_MS),
            "open": first.bid,
            "high": second.bid,
            "low": first.bid,
            "close": second.bid,
            "volume": 2,
        },
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


def test_time_of_a_closed_one_is_the_end_of_its_interval(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=ALL)
    ticker.at(symbol, midnight_ms - 30_000, midnight_ms + 5_000)
    frames = hear_closed(socket, *ALL)
    assert {frame["time"] for frame in frames} == {midnight_ms}
    opened_at = [iso_s(midnight_ms - span_ms) for span_ms in SPANS_MS.values()]
    assert [frame["candle"]["time"] for frame in frames] == opened_at


def test_one_minute_is_meant_where_no_timeframe_is_named(opened: Open, key: str, symbol: str) -> None:
    assert opened(CANDLES, key=key).subscribe(symbol)["timeframes"] == ["1m"]


def test_timeframes_add_up_and_hold_for_all_symbols(opened: Open, key: str, symbol: str) -> None:
    other = make_instrument(f"B{symbol}").symbol
    socket = opened(CANDLES, key=key)
    assert socket.subscribe(symbol, timeframes=["1h"])["timeframes"] == ["1h"]
    assert socket.subscribe(other, features=["seq"], timeframes=["5m"])["positions"].keys() == {
        *(f"{symbol}/5m", f"{symbol}/1h", f"{other}/5m", f"{other}/1h")
    }
    assert socket.subscribe(other)["timeframes"] == ["5m", "1h"]
    assert socket.ask({"action": "list"}) == {
        "type": "subscriptions",
        "symbols": sorted([symbol, other]),
        "timeframes": ["5m", "1h"],
    }


def test_who_leaves_all_symbols_says_anew_which_timeframes_he_wants(
    opened: Open, key: str, symbol: str
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=["1h"])
    assert socket.ask({"action": "unsubscribe"}) == {"type": "unsubscribed", "symbols": []}
    assert socket.subscribe(symbol)["timeframes"] == ["1m"]


def test_one_timeframe_cannot_be_left_and_none_is(opened: Open, key: str, symbol: str) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=["1m", "1h"])
    refused = socket.refused({"action": "unsubscribe", "timeframes": ["1h"]})
    assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "timeframes")
    assert socket.ask({"action": "list"})["timeframes"] == ["1m", "1h"]


@pytest.mark.parametrize("wrong", [[], ["2m"], ["1M"], ["1m", "1w"], "1m", [60]])
def test_other_timeframes_are_an_invalid_message(opened: Open, key: str, symbol: str, wrong: object) -> None:
    socket = opened(CANDLES, key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], "timeframes": wrong})
    assert code_of(refused) == ("invalid_message", False, False)
    assert (refused["error"]["field"], refused["error"]["allowed"]) == ("timeframes", ALL)
    assert socket.is_open


def test_star_is_refused_and_symbols_are_required(opened: Open, key: str) -> None:
    socket = opened(CANDLES, key=key)
    for message in ({"action": "subscribe", "symbols": ["*"]}, {"action": "subscribe"}):
        refused = socket.refused(message)
        assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "symbols")


def test_numbers_of_each_timeframe_have_no_holes(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    last = socket.subscribe(symbol, timeframes=["1m", "5m"], features=["seq"])["positions"]
    minutes = [midnight_ms + number * MINUTE_MS for number in range(12)]
    ticker.at(symbol, *minutes)
    frames = [socket.hear() for _ in range(11 + 2)]
    assert seqs_of(frames, "1m") == [last[f"{symbol}/1m"] + number for number in range(1, 12)]
    assert seqs_of(frames, "5m") == [last[f"{symbol}/5m"] + number for number in range(1, 3)]


def test_client_of_one_timeframe_hears_no_other(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=["5m"], features=["seq"])
    ticker.at(symbol, *[midnight_ms + number * MINUTE_MS for number in range(11)])
    frames = [socket.hear(), socket.hear()]
    assert [frame["timeframe"] for frame in frames] == ["5m", "5m"]
    assert frames[1]["seq"] == frames[0]["seq"] + 1


def test_missed_candles_follow_by_symbol_and_timeframe(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    ticker.at(symbol, midnight_ms - 5 * MINUTE_MS, midnight_ms)
    with opened(CANDLES, key=key) as left:
        reply = left.subscribe(symbol, features=["seq"], timeframes=["1m", "5m"])
    ticker.at(symbol, *[midnight_ms + number * MINUTE_MS for number in range(1, 7)])
    socket = opened(CANDLES, key=key)
    missed = resume(reply["epoch"], reply["positions"])
    again = socket.subscribe(symbol, timeframes=["1m", "5m"], **missed)
    assert (again["recovered"], again["positions"]) == (True, reply["positions"])
    frames = [socket.hear()]
    while frames[-1]["timeframe"] != "5m":
        frames.append(socket.hear())
    first = reply["positions"][f"{symbol}/1m"] + 1
    assert seqs_of(frames, "1m") == list(range(first, first + len(frames) - 1))
    assert len(frames) > 4
    assert frames[-1]["seq"] == reply["positions"][f"{symbol}/5m"] + 1


def test_position_that_is_too_old_brings_the_last_closed_one_alone(
    opened: Open, ticker: Ticker, key: str, symbol: str, midnight_ms: int
) -> None:
    ticker.at(symbol, midnight_ms, midnight_ms + MINUTE_MS)
    socket = opened(CANDLES, key=key)
    reply = socket.subscribe(symbol, **resume("elsewhere", {f"{symbol}/1m": 1}))
    assert (reply["recovered"], reply["unrecovered"]) == (False, [f"{symbol}/1m"])
    heard = socket.hear()
    assert (heard["closed"], heard["seq"]) == (True, reply["positions"][f"{symbol}/1m"])


@pytest.mark.parametrize("wrong", ["EURUSD", "EURUSD/2m", "EURUSD/"])
def test_position_without_a_timeframe_is_refused(opened: Open, key: str, symbol: str, wrong: str) -> None:
    socket = opened(CANDLES, key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], **resume("e", {wrong: 1})})
    assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "resume")


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


def test_forming_comes_on_request_alone(
    opened: Open, ticker: Ticker, api: Api, key: str, symbol: str, look: Callable[[], None]
) -> None:
    plain, asked = opened(CANDLES, key=key), opened(CANDLES, key=key)
    plain.subscribe(symbol, timeframes=["1d"])
    asked.subscribe(symbol, timeframes=["1d"], features=["seq"], events=["forming"])
    tick = ticker(symbol, 3)[-1]
    look()
    frame = asked.hear()
    assert set(frame) == FIELDS
    assert (frame["timeframe"], frame["closed"], frame["time"]) == ("1d", False, tick.time_ms)
    assert frame["candle"] == api.ask(f"/api/market/{symbol}?timeframe=1d").json()["ohlcv"][-1]
    assert plain.is_open


def test_forming_comes_at_most_once_a_second(
    opened: Open, ticker: Ticker, key: str, symbol: str, look: Callable[[], None]
) -> None:
    socket = opened(CANDLES, key=key)
    socket.subscribe(symbol, timeframes=["1d"], events=["forming"])
    last = []
    for _ in range(2):
        ticker(symbol, 5)
        last.append(ticker(symbol, 5)[-1].bid)
        look()
    assert [socket.hear()["candle"]["close"] for _ in last] == last


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


def test_events_of_signals_are_refused(opened: Open, key: str, symbol: str) -> None:
    socket = opened(CANDLES, key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], "events": ["signal.closed"]})
    assert code_of(refused) == ("invalid_message", False, False)
    assert refused["error"]["allowed"] == ["forming"]


def test_misbehaviour_of_the_test_instrument_is_not_offered(
    opened: Open, key: str, symbol: str, settings: Any
) -> None:
    settings.DEMO = True
    refused = opened(CANDLES, key=key).refused(
        {"action": "subscribe", "symbols": [symbol], "features": ["chaos:gap"]}
    )
    assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "features")


def test_it_counts_as_a_stream(opened: Open, api: Api, account: Account, key: str, symbol: str) -> None:
    opened(CANDLES, key=key).subscribe(symbol)
    paths = [each["path"] for each in api.ask("/api/limits").json()["streams"]["open"]]
    assert paths == [CANDLES]


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
