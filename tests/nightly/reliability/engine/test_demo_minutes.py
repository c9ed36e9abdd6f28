"""The demo's candles where engine and web process are apart: what clients were sent, over a change of source
and over a kill of the engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from core.times import MINUTE_MS
from instruments.models import Instrument
from instruments.saving import save
from market.models import Candle, FormingMinute, LastQuote
from market.prices.candles import TIMEFRAMES
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.engine_processes import engines
from tests.reliability.services.processes import Installation, Process, http

SYMBOL = "TORN"
REAL = 7_777.0
# So many ticks before the kill, and after it.
HEARD = 6
NAMES = ("open", "high", "low", "close", "volume")


class Listener:
    """A client, and all that it was sent."""

    def __init__(self, server: Process, key: str) -> None:
        self.ticks: list[dict[str, Any]] = []
        self._server, self._key = server, key

    @contextmanager
    def listening(self) -> Iterator[None]:
        address = f"{self._server.url.replace('http', 'ws')}/ws/market"
        with connect(address, ping_interval=None, open_timeout=PATIENCE_S, close_timeout=1) as client:
            client.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": self._key}))
            assert json.loads(client.recv(PATIENCE_S))["rejected"] == []
            thread = threading.Thread(target=self._hear, args=(client,))
            thread.start()
            try:
                yield
            finally:
                client.close()
                thread.join()

    def _hear(self, client: Any) -> None:
        try:
            for message in client:
                told = json.loads(message)
                if "bid" in told:
                    self.ticks.append(told)
        except ConnectionClosed:
            return

    def bars(self, timeframe: str) -> list[dict[str, Any]]:
        path = f"/api/market/{SYMBOL}?timeframe={timeframe}&bars=500"
        return list(self._server.ask(path, self._key).json()["ohlcv"])

    def simulated(self) -> list[dict[str, Any]]:
        return [tick for tick in self.ticks if tick["bid"] != REAL]


def candles_of(ticks: list[dict[str, Any]]) -> dict[int, list[float]]:
    made = {}
    for opened_ms, each in groupby(ticks, lambda tick: tick["time"] // MINUTE_MS * MINUTE_MS):
        of_minute = list(each)
        bids, volume = [tick["bid"] for tick in of_minute], sum(tick["volume"] for tick in of_minute)
        made[opened_ms] = [bids[0], max(bids), min(bids), bids[-1], round(volume, 8)]
    return made


def stored() -> dict[int, list[float]]:
    """The simulated minutes, with the one that forms."""
    closed = Candle.objects.filter(instrument__symbol=SYMBOL, simulated=True, timeframe="1m")
    rows = [*closed, *FormingMinute.objects.filter(instrument__symbol=SYMBOL)]
    found: dict[int, list[float]] = {}
    for row in rows:
        prices = [float(getattr(row, name)) for name in NAMES]
        found.setdefault(round(row.opened_at.timestamp() * 1000), prices)
    return found


def last_quoted_ms() -> int:
    quoted_at = LastQuote.objects.get(instrument__symbol=SYMBOL).quoted_at
    assert quoted_at is not None
    return round(quoted_at.timestamp() * 1000)


def give_source(source: str) -> None:
    instrument = Instrument.objects.get(symbol=SYMBOL)
    instrument.source = source
    save(instrument, by="test")


def push(server: Process, ingest_key: str) -> bool:
    tick, headers = {"symbol": SYMBOL, "bid": REAL, "ask": REAL + 1}, {"X-Ingest-Key": ingest_key}
    answer = http.post(f"{server.url}/ingest/ticks", json=tick, headers=headers).json()
    return bool(answer.get("accepted") == 1)


def play(scaled: Installation, server: Process, client: Listener, ingest_key: str) -> int:
    """A pushed instrument becomes the demo's, whose engine is killed and replaced; in which minute."""
    with engines(scaled, 1) as (engine,):
        wait_until(lambda: push(server, ingest_key))
        with client.listening():
            with scaled.orm():
                give_source("demo")
            # From its first tick on, every one of the simulated series is heard.
            wait_until(lambda: len(client.simulated()) >= HEARD)
            engine.kill()
            killed_ms = int(client.ticks[-1]["time"]) // MINUTE_MS * MINUTE_MS
            heard = len(client.ticks)
            with engines(scaled, 1):
                wait_until(lambda: len(client.ticks) >= heard + HEARD)
            # It has ended in order: all that it sent is written, and nothing comes any more.
            with scaled.orm():
                last_ms = last_quoted_ms()
            wait_until(lambda: client.ticks[-1]["time"] >= last_ms)
    return killed_ms


@pytest.mark.usefixtures("rows")
@pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted")
def test_the_candle_of_the_minute_of_the_kill_matches_what_clients_were_sent(
    scaled: Installation, tell: Tell
) -> None:
    with scaled.orm():
        make_instrument(SYMBOL, type="crypto", source="push")
        key = make_key(make_account(tier=make_tier("torn", streams=10)))
        ingest_key = issue_ingest_key("desk", SYMBOL, by="test")[1]
    with scaled.serve(1) as (server,):
        client = Listener(server, key)
        killed_ms = play(scaled, server, client, ingest_key)
        answered = {timeframe: client.bars(timeframe) for timeframe in TIMEFRAMES}
    sent = client.simulated()
    expected = candles_of(sent)
    tell(f"{len(sent)} ticks within {len(expected)} min")
    assert killed_ms in expected
    with scaled.orm():
        found = stored()
    assert {opened_ms: found.get(opened_ms) for opened_ms in expected} == expected
    # And what is answered of all intervals is made of them, with nothing of the pushed series.
    for timeframe, bars in answered.items():
        assert max(bar["high"] for bar in bars) < REAL, timeframe
        assert sum(bar["volume"] for bar in bars) >= sum(candle[-1] for candle in expected.values()) - 1e-6
    assert [answered["1m"][-1][name] for name in NAMES] == expected[max(expected)]
    # The control: one tick fewer, or one twice, makes other candles.
    assert candles_of(sent[1:]) != expected != candles_of([sent[0], *sent])
