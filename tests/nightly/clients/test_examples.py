"""The examples, run as their first lines say, on our history and on a day of the archive."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from math import sin
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from tickwire import Candle

from tests.clients.history.keeping import Answer, Keeper, Request, in_json, keeping, make_candles
from tests.patience import PATIENCE_S

DAY = "ticks/EURUSD/2026-11-20.parquet"
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


class Quoting(Keeper):
    def answer(self, request: Request) -> Answer:
        if request.path.endswith("/quote"):
            return in_json({"symbol": "EURUSD", "bid": 1.08, "ask": 1.0801, "spread": 0.0001})
        return super().answer(request)


def run(keeper: Keeper, example: str, *words: str) -> str:
    own = {"TICKWIRE_URL": keeper.url, "TICKWIRE_KEY": "tw_live_any", "PYTHONPATH": "clients/python"}
    command = [sys.executable, f"clients/python/examples/{example}", *words]
    ran = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def wave(candle: Candle, number: int) -> Candle:
    """Prices that rise and fall, so that averages cross."""
    price = round(1.08 + 0.01 * sin(number / 40), 5)
    return {**candle, "open": price, "high": price + 0.0002, "low": price - 0.0002, "close": price + 0.0001}


def test_backtest_trades_on_the_whole_history() -> None:
    candles = [wave(candle, number) for number, candle in enumerate(make_candles(2_000))]
    with keeping(Quoting(candles)) as keeper:
        said = run(keeper, "backtest.py", "EURUSD", "1m").splitlines()
    assert said[0].startswith("EURUSD 1m: 2,000 bars, 2025-11-20 01:00:00+00:00 to 2025-11-21")
    # Half a period of the sine is 126 bars, and each turn crosses the averages once.
    trades = int(said[1].split()[0])
    assert trades == pytest.approx(2_000 / 126, abs=2)


def test_day_of_the_archive_is_read_by_duckdb(tmp_path: Path) -> None:
    """In its layout: two hours, a tick a second in the first, every other in the second."""
    at = [MIDNIGHT + timedelta(seconds=n) for n in [*range(3_600), *range(3_600, 7_200, 2)]]
    many, bids = len(at), [round(1.08 + n * 1e-6, 6) for n in range(len(at))]
    columns = {
        "seq": pyarrow.array(range(1, many + 1), pyarrow.int64()),
        "epoch": pyarrow.array(["e1"] * many).dictionary_encode(),
        "time": pyarrow.array(at, pyarrow.timestamp("ms", "UTC")),
        "bid": pyarrow.array(bids, pyarrow.float64()),
        "ask": pyarrow.array([bid + 0.0002 for bid in bids], pyarrow.float64()),
        "volume": pyarrow.array([1.0] * many, pyarrow.float64()),
        "side": pyarrow.array([0] * many, pyarrow.int8()),
        "source": pyarrow.array(["dukascopy"] * many).dictionary_encode(),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "day.parquet", compression="zstd")
    with keeping(Keeper()) as keeper:
        with pytest.raises(AssertionError, match="The archive has no ticks of EURUSD"):
            run(keeper, "archive_day.py", "EURUSD")
        keeper.files[DAY] = (tmp_path / "day.parquet").read_bytes()
        said = run(keeper, "archive_day.py", "EURUSD").splitlines()
    assert said[0] == DAY
    assert said[2:] == [
        "00:00   3,600   0.00020  1.08000  1.08360  1.08000  1.08360",
        "01:00   1,800   0.00020  1.08360  1.08540  1.08360  1.08540",
    ]
