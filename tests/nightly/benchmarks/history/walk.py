"""All that is stored, walked page by page while candles close, and compared with `export_candles`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import httpx

from core.times import MINUTE_MS
from tests.patience import PATIENCE_S
from tests.programs.installation import SETTINGS
from tests.programs.running import Serve

from .prepare import START_MS

PATH = "/api/market/EURUSD/history"
KEPT_FOR_GOOD = {f"CANDLE_DAYS_{timeframe}": "0" for timeframe in ("1M", "5M", "15M")}


class Walked(NamedTuple):
    bars: int
    pages: int
    seconds: float
    closed: int
    """Of the bars, those that closed while it was walked."""
    is_equal: bool
    """Byte for byte what was exported afterwards, up to the last."""


def walk_while_candles_close(directory: Path, bars: int, closing: int, limit: int) -> Walked:
    own = SETTINGS | {
        "VAR_DIR": str(directory / "var"),
        "REPLAY_SPEED": "0",
        "CANDLE_DAYS_1M": "0",
        "CANDLE_DAYS_5M": "0",
    }
    key = run(own, "-m", "tests.nightly.benchmarks.history.prepare", str(bars), str(closing)).decode()
    with Serve(directory / "var", **own) as server, httpx.Client(timeout=PATIENCE_S) as client:
        stored = count_from(client, server.url + PATH, key, bars)
        began_s = time.perf_counter()
        pages = list(walk(client, server.url + PATH, key, bars + closing, limit))
        took_s = time.perf_counter() - began_s
        lines = b"".join(pages).splitlines(keepends=True)
        end = lines[-1][:17].decode() + "59Z"
        exported = run(own, "manage.py", "export_candles", "EURUSD", "1m", "--end", end)
    digests = {sha256(text).digest() for text in (exported.partition(b"\n")[2], b"".join(lines))}
    return Walked(len(lines), len(pages), took_s, len(lines) - stored, len(digests) == 1)


def count_from(client: httpx.Client, url: str, key: str, bars: int) -> int:
    """How many are stored, of which so many were there from the beginning."""
    asked = {"start": START_MS + bars * MINUTE_MS, "limit": 10_000}
    answer = client.get(url, params=asked, headers={"X-API-Key": key}).raise_for_status()
    return bars + int(answer.json()["count"])


def walk(client: httpx.Client, url: str, key: str, all_bars: int, limit: int) -> Iterator[bytes]:
    """The rows of each page as CSV. A walk that has overtaken the engine begins again where it stood, until
    the last candle has closed."""
    headers = {"X-API-Key": key, "Accept": "text/csv"}
    asked: dict[str, str | int] = {"limit": limit}
    walked = 0
    while walked < all_bars:
        answer = client.get(url, params=asked, headers=headers).raise_for_status()
        rows = answer.content.partition(b"\n")[2]
        if rows:
            walked += rows.count(b"\n")
            yield rows
        cursor = answer.headers.get("X-Next-Cursor")
        if cursor is not None:
            asked["cursor"] = cursor
        elif rows:
            last = rows.splitlines()[-1].partition(b",")[0].decode()
            asked = {"limit": limit, "start": f"{last[:17]}01Z"}


def run(environment: Mapping[str, str], *words: str) -> bytes:
    return subprocess.run(
        [sys.executable, *words], env=os.environ | environment, stdout=subprocess.PIPE, check=True
    ).stdout
