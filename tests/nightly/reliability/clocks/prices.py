"""What a service shows of prices while the clocks of its processes are set."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from core.times import MINUTE_MS
from market.push.keys import issue_ingest_key
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.ledger import Frame
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.services.processes import Installation, Process, http

PUSHED = "CLOCKED"
"""Without times of their own."""
Candles = dict[int, tuple[float, ...]]
"""Open, high, low, close and volume by the minute."""


class Prices:
    """Of instruments that are there already, and one that is pushed; a client hears them all."""

    def __init__(self, installation: Installation, *symbols: str) -> None:
        self.symbols = [PUSHED, *symbols]
        self.refused: list[Any] = []
        self.heard: defaultdict[str, list[Frame]] = defaultdict(list)
        self._pushed = 0
        with installation.orm():
            make_instrument(PUSHED, source="push")
            self._pushes = issue_ingest_key("clocks", by="test")[1]
        self._asks = installation.make_key()

    @contextmanager
    def heard_from(self, server: Process) -> Iterator[None]:
        with subscribed(server.port, self._asks, self.symbols, features=["seq"]) as (connection, _):
            ear = threading.Thread(target=self._hear, args=(connection,))
            ear.start()
            try:
                yield
            finally:
                connection.close()
                ear.join(PATIENCE_S)

    def _hear(self, connection: Connection) -> None:
        with suppress(ConnectionClosed):
            for text in connection:
                frame = json.loads(text)
                if "seq" in frame:
                    self.heard[frame["symbol"]].append(frame)

    def push(self, server: Process) -> int:
        """How many of one tick were taken."""
        bid = round(1 + (self._pushed * 7 % 10 + 1) / 10_000, 4)
        body = [{"symbol": PUSHED, "bid": bid, "ask": round(bid + 0.0002, 4)}]
        headers = {"X-Ingest-Key": self._pushes}
        answers: list[dict[str, Any]] = []

        def is_answered() -> bool:
            answers.append(http.post(f"{server.url}/ingest/ticks", json=body, headers=headers).json())
            return "error" not in answers[-1]

        # A process that follows a step of the clock may say that it is busy: then the tick is sent again.
        wait_until(is_answered)
        answer = answers[-1]
        self._pushed += answer["accepted"]
        self.refused += answer["rejected"]
        return int(answer["accepted"])

    def wait_until_taken(self, server: Process) -> None:
        wait_until(lambda: self.push(server) == 1)

    def quoted(self, server: Process) -> dict[str, str]:
        """When each was last quoted; empty for one that never was."""
        return {each: self._ask(server, f"{each}/quote").json().get("timestamp", "") for each in self.symbols}

    def states(self, server: Process) -> set[str]:
        return {self._ask(server, f"{each}/quote").headers["X-Market-State"] for each in self.symbols}

    def go_on(self, server: Process) -> None:
        """All are quoted anew, at a later time than before."""
        before = self.quoted(server)
        self.push(server)
        wait_until(lambda: all(self.quoted(server)[each] > before[each] for each in self.symbols))

    def wait_for_metric(self, server: Process, name: str, value: float) -> None:
        wait_until(lambda: server.metric(name) >= value)

    def candles(self, server: Process, symbol: str, *, closed_only: bool) -> Candles:
        path = f"{symbol}?timeframe=1m&bars=500&closed_only={str(closed_only).lower()}"
        found = self._ask(server, path).json()["ohlcv"]
        times = [ms(candle["time"]) for candle in found]
        assert times == sorted(set(times))
        names = ("open", "high", "low", "close", "volume")
        return {at_ms: tuple(each[name] for name in names) for at_ms, each in zip(times, found, strict=True)}

    def contradictions(self, server: Process) -> tuple[int, list[str]]:
        """How many candles were compared with what the client heard, and which differ: of what is pushed all
        minutes, of others those that are closed and were heard from their beginning."""
        wait_until(lambda: len(self.heard[PUSHED]) == self._pushed)
        found, compared = [], 0
        for symbol in self.symbols:
            is_pushed = symbol == PUSHED
            shown = self.candles(server, symbol, closed_only=not is_pushed)
            heard = aggregated(self.heard[symbol])
            begun_ms = min(heard) + (not is_pushed)
            for at_ms in (shown.keys() | heard.keys()) if is_pushed else shown.keys():
                # A minute without a tick is flat.
                if at_ms >= begun_ms and shown.get(at_ms, NOTHING)[-1] + heard.get(at_ms, NOTHING)[-1]:
                    compared += 1
                    if shown.get(at_ms) != heard.get(at_ms):
                        found.append(f"{symbol} {at_ms}: {shown.get(at_ms)} of {heard.get(at_ms)}")
        return compared, found

    def disorder(self) -> int:
        """Frames whose time is before that of the one before, or whose number is not the next."""
        return sum(
            later["time"] < frame["time"] or later["seq"] != frame["seq"] + 1
            for frames in self.heard.values()
            for frame, later in zip(frames, frames[1:], strict=False)
        )

    def _ask(self, server: Process, path: str) -> Any:
        return server.ask(f"/api/market/{path}", self._asks)


NOTHING = (0.0,)


def aggregated(frames: list[Frame]) -> Candles:
    made: Candles = {}
    for frame in frames:
        at_ms, bid = frame["time"] // MINUTE_MS * MINUTE_MS, frame["bid"]
        first, high, low, _, volume = made.get(at_ms, (bid, bid, bid, bid, 0.0))
        made[at_ms] = first, max(high, bid), min(low, bid), bid, volume + frame["volume"]
    return made


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
