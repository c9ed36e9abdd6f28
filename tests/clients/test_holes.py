"""Holes in a stream: both clients report each, fill it where they are to, and go on from a file of places."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tickwire import AsyncClient, Client, Missed, State, StreamError, TickwireError

from .history.keeping import MINUTE_MS, START_MS, iso, make_candles
from .returning import Frame, error, reply, says, serving
from .test_typescript import said

pytestmark = pytest.mark.served

KEY = "tw_live_any"
END = error("revoked", retry=False)
ENDED = {"name": "StreamError", "code": "revoked"}
Bot = Callable[..., list[Frame]]
"""Watches A at an address, with the places in a file, until the stream ends: what it received."""


def told(missed: Missed) -> Frame:
    """In the other client's words."""
    numbers = {"symbol": missed.symbol, "first": missed.first, "last": missed.last}
    times = {"startMs": missed.start_ms, "endMs": missed.end_ms}
    return {"missed": {**numbers, **times, "filled": missed.filled, "isFilled": missed.is_filled}}


def ended(failure: TickwireError) -> Frame:
    return {"name": type(failure).__name__} | (
        {"code": failure.code} if isinstance(failure, StreamError) else {}
    )


def blocking(url: str, path: Path, *, fill: bool = False, tries: int = 8) -> list[Frame]:
    received, state = list[Any](), State.load(path)
    with Client(KEY, url, walk_retries=tries, retries=0) as client:
        try:
            for tick in client.watch(
                "A", state=state, fill=fill, on_missed=lambda hole: received.append(told(hole))
            ):
                received.append(tick)
                state.save(path)
        except TickwireError as failure:
            received.append(ended(failure))
    return received


def asynchronous(url: str, path: Path, *, fill: bool = False, tries: int = 8) -> list[Frame]:
    received, state = list[Any](), State.load(path)

    async def watch() -> None:
        async with AsyncClient(KEY, url, walk_retries=tries, retries=0) as client:
            async for tick in client.watch(
                "A", state=state, fill=fill, on_missed=lambda hole: received.append(told(hole))
            ):
                received.append(tick)
                state.save(path)

    try:
        asyncio.run(watch())
    except TickwireError as failure:
        received.append(ended(failure))
    return received


def typescript(url: str, path: Path, *, fill: bool = False, tries: int = 8) -> list[Frame]:
    options = {"state": str(path), "symbols": ["A"], "fill": fill, "walkRetries": tries, "retries": 0}
    *received, last = said(url, "bot", options)
    return [*received, {name: last[name] for name in ("name", "code") if name in last}]


@pytest.fixture(params=[blocking, asynchronous, typescript], ids=["blocking", "asynchronous", "typescript"])
def bot(request: pytest.FixtureRequest) -> Bot:
    if request.param is typescript:
        request.getfixturevalue("built")
    made: Bot = request.param
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def tick(seq: int, time: int | None = None) -> Frame:
    at = 1_000 * seq if time is None else time
    return {"symbol": "A", "bid": 1.0, "ask": 1.1, "spread": 0.1, "time": at, "volume": 1.0, "seq": seq}


def page(epoch: str, *seqs: int, following: str | None = None) -> Frame:
    """Of ticks over REST."""
    items = [
        {
            "timestamp": iso(each["time"]),
            **{name: each[name] for name in each if name not in ("symbol", "time")},
        }
        for each in map(tick, seqs)
    ]
    return {"symbol": "A", "epoch": epoch, "items": items, "count": len(items), "next": following}


def hole(first: int | None, last: int | None, start_ms: int | None, end_ms: int, **more: Any) -> Frame:
    times = {"startMs": start_ms, "endMs": end_ms}
    numbers = {"symbol": "A", "first": first, "last": last}
    return {"missed": {**numbers, **times, "filled": None, "isFilled": False, **more}}


def at_four(*frames: Frame) -> Any:
    return says(reply("A", epoch="e", positions={"A": 4}), *frames, END, then=4401)


def test_hole_is_reported_and_a_snapshot_marked_and_nothing_comes_twice(bot: Bot, path: Path) -> None:
    conflated = {"type": "conflated", "symbol": "A", "dropped": 2}
    frames = [tick(4), tick(5), tick(8), tick(8), tick(9), conflated, tick(12)]
    with serving(at_four(*frames)) as service:
        received = bot(service.url, path)
    snapshot = tick(4) | {"snapshot": True}
    missed = hole(6, 7, 5_000, 8_000)
    assert received == [snapshot, tick(5), missed, tick(8), tick(9), tick(12), ENDED]
    assert service.requests == []


def test_missing_ticks_are_fetched_and_come_before_the_one_that_showed_it(bot: Bot, path: Path) -> None:
    with serving(at_four(tick(5), tick(8), tick(9))) as service:
        # As of a process that knows the last one a moment later.
        service.pages = [page("e", 5, 6), page("e", 6, 7, 8)]
        received = bot(service.url, path, fill=True)
    missed = hole(6, 7, 5_000, 8_000, filled=2, isFilled=True)
    assert received == [tick(5), tick(6), tick(7), missed, tick(8), tick(9), ENDED]
    asked = [(where, query["start"], query["limit"]) for where, query in service.requests]
    assert asked == [("/api/market/A/ticks", start, "10000") for start in ("5000", "6000")]


@pytest.mark.parametrize("pages", [[], [{"items": []}], [page("other", 6, 7), page("other", 6, 7)]])
def test_what_cannot_be_fetched_is_reported_and_the_stream_goes_on(
    bot: Bot, path: Path, pages: list[Frame]
) -> None:
    with serving(at_four(tick(5), tick(8))) as service:
        service.pages = list(pages)
        received = bot(service.url, path, fill=True)
    assert received == [tick(5), hole(6, 7, 5_000, 8_000, filled=0), tick(8), ENDED]


def test_bot_that_starts_again_after_a_restart_of_the_engine_has_every_tick(bot: Bot, path: Path) -> None:
    after = reply("A", epoch="new", positions={"A": 2}, recovered=False, unrecovered=["A"])
    with serving(at_four(tick(5)), says(after, tick(2, 9_000), tick(3), END, then=4401)) as service:
        assert bot(service.url, path) == [tick(5), ENDED]
        assert "resume" not in service.asked()
        service.pages = [page("e", 5, 6, 7, following="c"), page("new", 1, 2, 3)]
        received = bot(service.url, path, fill=True)
        assert service.asked()["resume"] == {"epoch": "e", "positions": {"A": 5}}
    missed = hole(None, None, 5_000, 1, filled=4, isFilled=True)
    snapshot = tick(2, 9_000) | {"snapshot": True}
    assert received == [tick(6), tick(7), tick(1), tick(2), missed, snapshot, tick(3), ENDED]
    assert [query.get("cursor") for _, query in service.requests] == [None, "c"]
    places = json.loads(path.read_text())["streams"]["market"]["places"]
    assert places == {"A": {"epoch": "new", "seq": 3, "time": 3_000}}


def test_candles_are_filled_up_to_the_one_that_showed_the_hole(path: Path) -> None:
    """Python's: the other client's are fetched by the same paths."""
    candles = make_candles(6)

    def update(number: int, seq: int) -> Frame:
        closed_ms = START_MS + (number + 1) * MINUTE_MS
        candle = {"symbol": "A", "timeframe": "1m", "candle": candles[number], "closed": True}
        return {**candle, "time": closed_ms, "seq": seq}

    at_seven = reply("A", epoch="e", positions={"A/1m": 7}, time=START_MS + 90_000)
    received = list[Any]()

    def follow(client: Client) -> None:
        for each in client.follow_candles("A", fill=True, on_missed=received.append):
            received.append(each["candle"])

    with serving(says(at_seven, update(0, 7), update(4, 11), END, then=4401)) as service:
        service.pages = [{"ohlcv": candles[1:3], "next": "c"}, {"ohlcv": candles[3:4], "next": None}]
        with Client(KEY, service.url) as client, pytest.raises(StreamError):
            follow(client)
    missed = received.pop(4)
    assert received == candles[:5]
    assert (missed.first, missed.last, missed.filled, missed.is_filled) == (8, 10, 3, True)
    span = {"start": str(START_MS + 1), "end": str(START_MS + 4 * MINUTE_MS)}
    assert [query.items() >= span.items() for _, query in service.requests] == [True, True]


def test_stream_that_is_refused_again_and_again_is_an_error(bot: Bot, path: Path) -> None:
    with serving(says(error("stream_limit_exceeded", retry=True), then=4429)) as service:
        received = bot(service.url, path, tries=1)
        assert received == [{"name": "StreamError", "code": "stream_limit_exceeded"}]
        assert [service.asked()["action"] for _ in range(2)] == ["subscribe"] * 2
    # A stream that never was is one, too.
    assert bot(service.url, path, tries=1) == [{"name": "ServiceUnreachable"}]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"kind": "tickwire-state", "version": 2, "streams": {}}'),
        '{"kind": "another", "version": 1, "streams": {}}',
        '{"kind": "tickwire-state", "version": 1, "streams": {"market": {"places": {"A": {"epoch": "e"}}}}}',
    ],
)
def test_file_that_is_no_state_is_an_error(bot: Bot, path: Path, text: str) -> None:
    path.write_text(text)
    try:
        received = bot("http://127.0.0.1:9", path)
    except TickwireError as failure:
        received = [ended(failure)]
    assert received == [{"name": "StateError"}]
    assert path.read_text() == text
