"""Row 56: the clock of the machine is set, and the prices go on. Limits go by what has passed."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from core.steady_clock import ClockChange
from core.times import MINUTE_MS
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.ledger import Frame
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.clocks.clock import Clock, quoting_venue
from tests.reliability.fixtures import Tell
from tests.reliability.services.engine_processes import engines
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


STEP_S = 300
SET = "The machine's clock was set"


@pytest.mark.row(
    "56", "times in order, no tick refused, no candle rewritten, every symbol quoted again immediately"
)
def test_prices_continue_when_the_clock_jumps(embedded: Installation, tmp_path: Path, tell: Tell) -> None:
    clock = Clock(tmp_path)
    with embedded.orm():
        make_instrument("DEMOED", source="demo")
    prices = Prices(embedded, "DEMOED")
    with embedded.serve(1, **clock.environment) as (server,), prices.heard_from(server):
        wait_until(lambda: prices.push(server) == 1 and all(prices.quoted(server).values()))
        prices.go_on(server)
        ahead_s = []
        for steps, off_s in enumerate((-STEP_S, STEP_S), 1):
            closed = {each: prices.candles(server, each, closed_only=True) for each in prices.symbols}
            clock.step(off_s)
            # Before the service has decided what the step means, and after.
            prices.go_on(server)
            prices.wait_for_metric(server, "tickwire_clock_steps_total", steps)
            prices.go_on(server)
            ahead_s.append(server.metric("tickwire_clock_ahead_seconds"))
            assert prices.states(server) == {"open"}
            for symbol, before in closed.items():
                after = prices.candles(server, symbol, closed_only=True)
                assert {at_ms: after[at_ms] for at_ms in before} == before
        compared, contradictions = prices.contradictions(server)
        last_ms = prices.heard[PUSHED][-1]["time"] - prices.heard[PUSHED][0]["time"]
        logged = server.log.read_text().count(SET)
    tell(
        f"clock -300 and +300 s: refused: {len(prices.refused)}, {prices.disorder()} out of order, "
        f"{len(contradictions)} of {compared} candles wrong"
    )
    assert (prices.refused, prices.disorder(), contradictions) == ([], 0, [])
    assert (logged, ahead_s[1]) == (2, 0)
    assert ahead_s[0] > STEP_S / 2
    # Two minutes of what is pushed at least: it did follow the step ahead.
    assert compared >= 2
    assert last_ms > STEP_S * 1000


@pytest.mark.row("56", "a venue with times of its own is followed, whatever the clock is set to")
def test_a_venue_is_followed_when_the_clock_jumps(embedded: Installation, tmp_path: Path, tell: Tell) -> None:
    clock = Clock(tmp_path)
    with embedded.orm():
        make_instrument("BTCUSD", source="kraken")
    prices = Prices(embedded, "BTCUSD")
    with (
        quoting_venue("BTC/USD") as venue_url,
        embedded.serve(
            1, KRAKEN_WS_URL=venue_url, KRAKEN_REST_URL="http://127.0.0.1:1", **clock.environment
        ) as (server,),
        prices.heard_from(server),
    ):
        wait_until(lambda: prices.push(server) == 1 and all(prices.quoted(server).values()))
        ahead_s = []
        for steps, off_s in enumerate((-STEP_S, STEP_S), 1):
            clock.step(off_s)
            prices.go_on(server)
            prices.wait_for_metric(server, "tickwire_clock_steps_total", steps)
            prices.go_on(server)
            ahead_s.append(server.metric("tickwire_clock_ahead_seconds"))
        _, contradictions = prices.contradictions(server)
        kept = server.log.read_text().count(ClockChange.KEPT.value)
        apart_s = abs(prices.heard["BTCUSD"][-1]["time"] / 1000 - time.time())
    tell(f"{prices.disorder()} out of order, ahead of the clock {ahead_s[0]:+.0f} and {ahead_s[1]:+.0f} s")
    assert (prices.refused, prices.disorder(), contradictions) == ([], 0, [])
    assert ([round(seconds / STEP_S) for seconds in ahead_s], kept) == ([1, -1], 2)
    assert apart_s < STEP_S / 2


@pytest.mark.row("56", "times in order, no tick refused, though the processes start at different times")
def test_processes_agree_on_the_time_when_the_clock_jumps(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    clock = Clock(tmp_path)
    with scaled.orm():
        make_instrument("DEMOED", source="demo")
    prices = Prices(scaled, "DEMOED")
    with (
        engines(scaled, 1, **clock.environment),
        scaled.serve(1, **clock.environment) as (server,),
        prices.heard_from(server),
    ):
        wait_until(lambda: prices.push(server) == 1 and all(prices.quoted(server).values()))
        for steps, off_s in enumerate((-STEP_S, STEP_S), 1):
            clock.step(off_s)
            prices.go_on(server)
            prices.wait_for_metric(server, "tickwire_clock_steps_total", steps)
            # It may follow in two steps, and until the last it has the time of before.
            prices.wait_until_taken(server)
            prices.refused.clear()
            prices.go_on(server)
            with scaled.serve(1, **clock.environment) as (newcomer,):
                # It has the machine's time until it has heard the engine's.
                prices.wait_until_taken(newcomer)
                prices.refused.clear()
                prices.go_on(newcomer)
                prices.go_on(server)
        compared, contradictions = prices.contradictions(server)
    tell(f"{prices.disorder()} out of order, {len(contradictions)} of {compared} candles wrong")
    assert (prices.refused, prices.disorder(), contradictions) == ([], 0, [])


LIMIT, HOUR_S = 60, 3600


def now_of(server: Process, key: str) -> float:
    """What the service takes the time for."""
    return datetime.fromisoformat(server.ask("/api/session", key).json()["server_time"]).timestamp()


def admitted(server: Process, key: str) -> int:
    """Of a few more than the limit. One after the other, and again where the service was busy: who is sent
    away for that has not been counted."""
    found = Counter[int]()
    while found[200] + found[429] < LIMIT + 20:
        found[server.ask("/api/symbols", key).status_code] += 1
    assert set(found) <= {200, 429, 503}
    return found[200]


@pytest.mark.row("56", "exactly the limit is admitted; nobody is locked out beyond the window")
@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_the_rate_window_is_unaffected_by_the_clock(
    embedded: Installation, tmp_path: Path, tell: Tell, step_s: int
) -> None:
    clock = Clock(tmp_path)
    with embedded.orm():
        used, fresh, watcher = (make_key(make_account()) for _ in range(3))
    with embedded.serve(1, **clock.environment) as servers:
        before = admitted(servers[0], used)
        clock.step(step_s)
        off_s = now_of(servers[0], watcher) - time.time()
        again, newcomer = admitted(servers[0], used), admitted(servers[0], fresh)
    tell(f"clock {off_s:+.0f} s: admitted before {before}, in the same minute {again}, a newcomer {newcomer}")
    # The clock of the service did jump.
    assert abs(off_s - step_s) < HOUR_S / 2
    assert (before, newcomer) == (LIMIT, LIMIT)
    assert again == 0


@pytest.mark.row("56", "tells the time that the service is told")
def test_control_an_hour_that_passed_frees_the_window(embedded: Installation, tmp_path: Path) -> None:
    """With the monotonic clock faked too, so that the steps above are known to reach the process."""
    clock = Clock(tmp_path)
    del clock.environment["FAKETIME_DONT_FAKE_MONOTONIC"]
    with embedded.orm():
        key = make_key(make_account())
    with embedded.serve(1, **clock.environment) as servers:
        assert admitted(servers[0], key) == LIMIT
        clock.step(HOUR_S)
        assert admitted(servers[0], key) == LIMIT
