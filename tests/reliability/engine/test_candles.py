"""Closed candles over a kill -9 of the engine: a client is sent every one, once, and as REST has it."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from core.clock import now_ms
from core.times import MINUTE_MS
from market.prices.candles import DAY_MS, TIMEFRAMES
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation, Process, http

SYMBOL = "BARRED"
KEYS = [f"{SYMBOL}/{timeframe}" for timeframe in TIMEFRAMES]
# The first of them pass midnight, where all timeframes end.
BEFORE_MIDNIGHT, FIRST, MORE = 20, 30, 15
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("12", "no closed candle missing, none sent twice, all identical to REST"),
]


class Source:
    """A tick a minute, of a day that is past, so that nobody has to wait for the minutes."""

    def __init__(self, installation: Installation) -> None:
        with installation.orm():
            make_instrument(SYMBOL, source="push")
            self._key = issue_ingest_key("bars", by="test")[1]
            self.api_key = make_key(
                make_account(tier=make_tier("bars", streams=10, requests_per_minute=10_000))
            )
        today_ms = now_ms() // DAY_MS * DAY_MS
        self._at_ms, self._sent = today_ms - DAY_MS - BEFORE_MIDNIGHT * MINUTE_MS, 0

    def push(self, server: Process) -> bool:
        """Whether it was acknowledged; one that was not may have been taken all the same."""
        self._at_ms, self._sent = self._at_ms + MINUTE_MS, self._sent + 1
        bid = 1 + self._sent / 1_000
        tick = {"symbol": SYMBOL, "bid": bid, "ask": bid + 0.001, "time": self._at_ms}
        try:
            answer = http.post(
                f"{server.url}/ingest/ticks",
                json=tick,
                headers={"X-Ingest-Key": self._key},
                timeout=PATIENCE_S,
            )
        except httpx.TransportError:
            return False
        return answer.is_success and answer.json().get("accepted") == 1

    def push_many(self, server: Process, count: int) -> None:
        for _ in range(count):
            wait_until(lambda: self.push(server))


class Follower:
    """One client of all timeframes, over all of its connections."""

    def __init__(self, api_key: str) -> None:
        self._api_key = api_key
        self.heard: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.epochs: list[str] = []
        self.recovered: list[bool] = []

    @contextmanager
    def connected(self, server: Process) -> Iterator[Connection]:
        message: dict[str, Any] = {
            "action": "subscribe",
            "symbols": [SYMBOL],
            "timeframes": list(TIMEFRAMES),
            "api_key": self._api_key,
            "features": ["seq"],
        }
        if self.epochs:
            message["resume"] = {"epoch": self.epochs[-1], "positions": self.positions}
        with connect(
            f"ws://127.0.0.1:{server.port}/ws/candles", ping_interval=None, open_timeout=PATIENCE_S
        ) as socket:
            socket.send(json.dumps(message))
            reply = json.loads(socket.recv(PATIENCE_S))
            self.recovered += [reply["recovered"]] if self.epochs else []
            self.epochs.append(reply["epoch"])
            yield socket

    @property
    def positions(self) -> dict[str, int]:
        return {key: self.heard[key][-1]["seq"] if self.heard[key] else 0 for key in KEYS}

    def hear_until(self, socket: Connection, head: dict[str, int]) -> None:
        while any(self.positions[key] < head[key] for key in KEYS):
            frame = json.loads(socket.recv(PATIENCE_S))
            if "candle" in frame:
                self.heard[f"{frame['symbol']}/{frame['timeframe']}"].append(frame)

    def faults(self) -> tuple[int, int]:
        """Numbers that are missing, and those that came twice or too late."""
        steps = [
            after - before
            for frames in self.heard.values()
            for numbers in [[0, *(frame["seq"] for frame in frames)]]
            for before, after in zip(numbers, numbers[1:], strict=False)
        ]
        return sum(step - 1 for step in steps if step > 1), sum(step < 1 for step in steps)

    def others_than(self, server: Process, timeframe: str) -> int:
        """Candles that REST has otherwise, or not, or alone."""
        path = f"/api/market/{SYMBOL}?timeframe={timeframe}&bars=500&closed_only=true"
        stored = {bar["time"]: bar for bar in server.ask(path, self._api_key).json()["ohlcv"]}
        told = {each["candle"]["time"]: each["candle"] for each in self.heard[f"{SYMBOL}/{timeframe}"]}
        return sum(stored.get(time) != told.get(time) for time in stored.keys() | told.keys())


def head_of(server: Process, api_key: str) -> dict[str, int]:
    newcomer = Follower(api_key)
    with newcomer.connected(server) as socket:
        socket.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "features": ["seq"]}))
        return dict(json.loads(socket.recv(PATIENCE_S))["positions"])


def check(follower: Follower, server: Process, tell: Tell) -> None:
    missing, again = follower.faults()
    others = sum(follower.others_than(server, timeframe) for timeframe in TIMEFRAMES)
    count = sum(map(len, follower.heard.values()))
    tell(
        f"{count} candles of {len(TIMEFRAMES)} timeframes: missing: {missing}, duplicated: {again},"
        f" other {others}"
    )
    assert (missing, again, others) == (0, 0, 0)
    assert len(set(follower.epochs)) == 1
    assert all(follower.recovered)
    # The control: the same counting sees one that is left out, and one that came twice.
    minutes = follower.heard[KEYS[0]]
    minutes[5:6] = []
    assert follower.faults() == (1, 0)
    assert follower.others_than(server, "1m") == 1
    minutes[5:5] = [minutes[4]]
    assert follower.faults() == (1, 1)


def test_a_killed_server_continues_the_sequence_numbers_of_its_candles(
    embedded: Installation, tell: Tell
) -> None:
    source, port = Source(embedded), free_port()
    follower = Follower(source.api_key)
    for count in (FIRST, MORE):
        with embedded.web_process(port) as server:
            with follower.connected(server) as socket:
                source.push_many(server, count)
                follower.hear_until(socket, head_of(server, source.api_key))
            # What it misses.
            source.push_many(server, MORE)
            os.kill(server.pid, signal.SIGKILL)
    with embedded.web_process(port) as server, follower.connected(server) as socket:
        source.push_many(server, 2)
        follower.hear_until(socket, head_of(server, source.api_key))
        check(follower, server, tell)
