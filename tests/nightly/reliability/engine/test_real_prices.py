"""A demo beside real sources: `manage.py serve` invents no price for them, over kills and restarts, and
DEMO=0 takes what the demo made and nothing else."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import defaultdict
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.times import MINUTE_MS
from tests.patience import PATIENCE_S
from tests.programs.commands import manage
from tests.programs.running import Serve
from tests.reliability.services.processes import http

PUSHED, VENUES = "ETHUSD", "BTCUSD"
# ETHUSD is pushed from the beginning. BTCUSD was the demo's until the README's recipe gave it to Kraken,
# which cannot be reached, while a signal stood on it. TEST, which the demo adds, stays simulated.
PREPARE = """
import time
from django.contrib.auth.models import Permission
from django.core.management import call_command
from accounts.models import User
from instruments.models import Instrument
from instruments.saving import save
from market.store.checkpoints import write_quote
from market.push.keys import issue_ingest_key
from market.prices.records import Tick
call_command("migrate", verbosity=0)
call_command("load_instruments", verbosity=0)
Instrument.objects.exclude(symbol__in=["BTCUSD", "ETHUSD"]).delete()
bitcoin, ether = Instrument.objects.order_by("symbol")
# However long the test takes, the last quote can be traded.
bitcoin.stale_after_s = ether.stale_after_s = 86_400
ether.source = "push"
for instrument in (bitcoin, ether):
    save(instrument, by="test")
write_quote(ether.pk, Tick("ETHUSD", 2000.0, 2001.0, time.time_ns() // 1_000_000 - 300_000), "push")
call_command("seed_demo")
call_command("issue_key", "alice", "--tier", "premium")
alice = User.objects.get(username="alice")
alice.user_permissions.add(Permission.objects.get(codename="publish_signal"))
call_command("publish_signal", "alice", "BTCUSD", "buy", "--stop", "100", "--target", "990000")
call_command("publish_signal", "alice", "ETHUSD", "buy", "--stop", "1000", "--target", "9000")
bitcoin.source = "kraken"
save(bitcoin, by="test")
print(issue_ingest_key("desk", by="test")[1])
"""
NO_VENUE = {"KRAKEN_WS_URL": "ws://127.0.0.1:9", "KRAKEN_REST_URL": "http://127.0.0.1:9"}
CANDLES = (
    "SELECT timeframe, opened_at, open, high, low, close, volume, c.source FROM market_candle c "
    "JOIN instruments_instrument i ON i.id = c.instrument_id WHERE i.symbol = '{}' AND simulated = {} "
    "ORDER BY timeframe, opened_at"
)
QUOTES = (
    "SELECT i.symbol, bid, simulated FROM market_lastquote q "
    "JOIN instruments_instrument i ON i.id = q.instrument_id WHERE bid IS NOT NULL"
)
SIMULATED = "SELECT count(*) FROM market_candle WHERE simulated OR source LIKE '%demo%'"
SIGNALS = (
    "SELECT i.symbol, status, close_reason FROM signals_feed_signal s "
    "JOIN accounts_user u ON u.id = s.user_id JOIN instruments_instrument i ON i.id = s.instrument_id "
    "WHERE u.username = 'alice' ORDER BY i.symbol"
)
ENDED, ACTIVE = (VENUES, "closed", "cancelled"), (PUSHED, "active", "")


class Desk:
    """Whoever pushes, what was acknowledged, and what the candles of that are."""

    def __init__(self, key: str) -> None:
        self._headers = {"Authorization": f"Bearer {key}"}
        self._minutes: dict[int, list[float]] = defaultdict(list)
        self.last = 2000.0

    def push(self, serve: Serve, bid: float, ago_s: float = 0) -> None:
        time_ms = time.time_ns() // 1_000_000 - round(ago_s * 1000)
        tick = {"symbol": PUSHED, "bid": bid, "ask": bid + 1, "time": time_ms, "volume": 1}
        url = f"{serve.url}/ingest/ticks"
        answer = http.post(url, json=tick, headers=self._headers).json()
        assert answer["accepted"] == 1, answer
        self._minutes[time_ms // MINUTE_MS * MINUTE_MS].append(bid)
        self.last = bid

    def differences(self, bars: list[dict[str, Any]]) -> list[object]:
        """Bars that are neither of what was acknowledged nor flat, and minutes of it that have none."""
        wanted, found = dict(self._minutes), []
        for bar in bars:
            bids = wanted.pop(round(datetime.fromisoformat(bar["time"]).timestamp() * 1000), None)
            # Flat at a price that somebody pushed, where nobody pushed any.
            flat = [bar["close"] if bar["close"] in self.all() else 0.0] * 4
            expected = [bids[0], max(bids), min(bids), bids[-1], float(len(bids))] if bids else [*flat, 0.0]
            if [bar[name] for name in ("open", "high", "low", "close", "volume")] != expected:
                found.append(bar)
        return [*found, *wanted]

    def all(self) -> set[float]:
        return {2000.0, *(bid for bids in self._minutes.values() for bid in bids)}


class Demo:
    """An installation with the demo, one run after the other."""

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = var_dir
        done = manage(var_dir, "shell", "-v", "0", "-c", PREPARE, **NO_VENUE)
        assert done.returncode == 0, done.stderr
        words = done.stdout.split()
        (self._key,) = (word for word in words if word.startswith("tw_live_"))
        self.desk = Desk(words[-1])

    def serve(self, **changes: str) -> Serve:
        return Serve(self.var_dir, **NO_VENUE, **changes)

    def get(self, serve: Serve, path: str) -> httpx.Response:
        url, headers = f"{serve.url}/api/market/{path}", {"X-API-Key": self._key}
        return http.get(url, headers=headers)

    def bars(self, serve: Serve) -> list[dict[str, Any]]:
        return list(self.get(serve, f"{PUSHED}?timeframe=1m&bars=500").json()["ohlcv"])

    def stored(self, question: str) -> list[Any]:
        """Past Django, which would take a process of its own."""
        address = f"file:{self.var_dir / 'tickwire.sqlite3'}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_S)) as connection:
            return connection.execute(question).fetchall()

    def look(self, serve: Serve) -> None:
        """Nothing is invented for either, and nothing of what was acknowledged is gone."""
        assert self.get(serve, f"{VENUES}/quote").status_code == 503
        assert self.get(serve, VENUES).status_code == 503
        assert self.get(serve, f"{PUSHED}/quote").json()["bid"] == self.desk.last
        assert self.desk.differences(self.bars(serve)) == []
        assert self.stored(CANDLES.format(PUSHED, 1)) == []
        assert self.stored(CANDLES.format(VENUES, 0)) == []
        assert self.stored(SIGNALS) == [ENDED, ACTIVE]


@pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted")
def test_the_demo_invents_nothing_for_real_sources_and_takes_nothing_from_them(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "var")
    desk = demo.desk
    with demo.serve() as serve:
        demo.look(serve)
        for bid, ago_s in ((2001.0, 190), (2004.0, 189), (1999.0, 130), (2000.0, 70), (2002.0, 0)):
            desk.push(serve, bid, ago_s)
        # Acknowledged, and the process is gone before it is written.
        os.kill(serve.pid, signal.SIGKILL)
    with demo.serve() as serve:
        demo.look(serve)
        desk.push(serve, 2005.0)
        os.kill(serve.pid, signal.SIGKILL)
    simulated, before = demo.stored(CANDLES.format("TEST", 1)), demo.stored(CANDLES.format(PUSHED, 0))
    assert simulated
    with demo.serve(DEMO="0") as serve:
        demo.look(serve)
    after = demo.stored(CANDLES.format(PUSHED, 0))
    assert {row[0] for row in after} >= {"1m"}
    assert set(before) <= set(after)
    assert demo.stored(QUOTES) == [(PUSHED, desk.last, 0)]
    assert demo.stored(SIMULATED) == [(0,)]
    # The control: the reckoning sees a price that nobody sent, and one that is gone.
    bar = {"time": "2026-11-21T12:00:00Z", "volume": 0} | dict.fromkeys(("open", "high", "low", "close"), 1.0)
    assert bar in desk.differences([bar])
    assert desk.differences([])
