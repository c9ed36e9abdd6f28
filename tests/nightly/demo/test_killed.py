"""The demo killed in the middle of a minute, and over PostgreSQL and Redis with several workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from core.times import MINUTE_MS
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import Serve, environment
from tests.programs.services import postgres, redis

from .conftest import COMPLETE, PREPARE, keys_in, prepare_small, run

SYMBOL = "BTCUSD"

# So much of a minute has to be heard before the kill and after the minute began.
HEARD = 15


def ticks_until_killed(serve: Serve, key: str) -> list[dict[str, Any]]:
    """All that a subscribed client was sent, up to the kill in the middle of a minute."""
    ticks: list[dict[str, Any]] = []
    address = f"{serve.url.replace('http', 'ws')}/ws/market"
    with connect(address, open_timeout=PATIENCE_S) as client:
        client.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
        client.recv(PATIENCE_S)
        begun_ms = 0
        while sum(1 for tick in ticks if tick["time"] >= begun_ms) < HEARD or not begun_ms:
            ticks.append(json.loads(client.recv(PATIENCE_S)))
            if len(ticks) > 1 and ticks[-1]["time"] // MINUTE_MS > ticks[0]["time"] // MINUTE_MS:
                begun_ms = ticks[-1]["time"] // MINUTE_MS * MINUTE_MS
        os.kill(serve.pid, signal.SIGKILL)
        try:
            while True:
                ticks.append(json.loads(client.recv(PATIENCE_S)))
        except Exception:  # noqa: BLE001 - however the dead end says so
            # Where this came late, the next minute had begun before the kill.
            return [tick for tick in ticks if begun_ms <= tick["time"] < begun_ms + MINUTE_MS]


def candle_of(ticks: list[dict[str, Any]]) -> dict[str, float]:
    bids = [tick["bid"] for tick in ticks]
    volume = round(sum(tick["volume"] for tick in ticks), 8)
    return {"open": bids[0], "high": max(bids), "low": min(bids), "close": bids[-1], "volume": volume}


def test_the_interrupted_minute_is_what_was_sent(tmp_path: Path) -> None:
    var_dir = prepare_small(tmp_path / "var")
    with Serve(var_dir) as serve:
        key = keys_in(serve.output)["premium"]
        sent = ticks_until_killed(serve, key)
    minute_ms = sent[0]["time"] // MINUTE_MS * MINUTE_MS
    # Started within the minute, the feed would go on with it.
    while time.time() * 1000 < minute_ms + MINUTE_MS:
        time.sleep(0.2)

    with Serve(var_dir) as serve:
        key = keys_in(serve.output)["premium"]
        query = {"timeframe": "1m", "bars": "5", "closed_only": "true"}
        answer = httpx.get(
            f"{serve.url}/api/market/{SYMBOL}", params=query, headers={"X-API-Key": key}, timeout=PATIENCE_S
        )
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(minute_ms // 1000))
    (candle,) = [bar for bar in answer.json()["ohlcv"] if bar["time"] == stamp]
    expected = candle_of(sent)

    assert {name: candle[name] for name in expected} == expected


# Room for what the engine writes, and not for the past of one instrument.


WORKERS = [sys.executable, "manage.py", "serve", "--workers", "2"]


def lengths(running: Serve, timeframe: str) -> set[int]:
    """As several requests see it, whichever worker answers; 0 where one is refused, as before the first quote
    comes, or when a slow machine has asked for too long."""
    headers = {"X-API-Key": keys_in(running.output)["premium"]}
    query = {"timeframe": timeframe, "bars": "500"}
    address = f"{running.url}/api/market/BTCUSD"
    answers = [httpx.get(address, params=query, headers=headers, timeout=PATIENCE_S) for _ in range(8)]
    return {len(answer.json().get("ohlcv", ())) for answer in answers}


def test_every_process_has_the_past_once_it_is_made(tmp_path: Path) -> None:
    with postgres(tmp_path) as database_url, redis(tmp_path) as redis_url:
        var_dir = tmp_path / "var"
        urls: dict[str, str] = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        run(var_dir, PREPARE, **urls)
        with (
            Serve(var_dir, **urls).as_typed(WORKERS, Path.cwd()) as running,
            (tmp_path / "engine.log").open("wb") as log,
            subprocess.Popen(
                [sys.executable, "manage.py", "run_engine"],
                env=environment(var_dir, **urls),
                stdout=log,
                stderr=log,
            ) as engine,
        ):
            try:
                wait_until(lambda: COMPLETE in running.output)
                wait_until(lambda: all(lengths(running, each) == {500} for each in ("1m", "1h", "1d")))
                assert httpx.get(f"{running.url}/demo-past.json").json() is None
            finally:
                engine.terminate()
        assert running.output.count(COMPLETE) == 1
        assert "wait for a table" not in running.output
        assert "Traceback" not in running.output + (tmp_path / "engine.log").read_text()
