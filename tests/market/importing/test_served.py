"""What was imported beside a running server is what it answers."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.client import Api
from tests.factories import make_instrument
from tests.patience import wait_until

from .importing import import_files, walk, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]
TRADE = "12345,0.001,100.0,100,105,1759665600000,True,True\n"


def ask_until(api: Api, path: str, status: int) -> httpx.Response:
    wait_until(lambda: api.ask(path).status_code == status)
    return api.ask(path)


def test_candles_and_quote_of_an_instrument_that_nobody_quoted(api: Api, tmp_path: Path) -> None:
    make_instrument("EURUSD")
    assert api.ask("/api/market/EURUSD").status_code == 503
    ticks = walk("2026-10-05T10:00", 3)

    import_files(write(tmp_path / "EURUSD.jsonl", ticks))

    bars = ask_until(api, "/api/market/EURUSD?timeframe=1m", 200).json()["ohlcv"]
    assert [bar["time"] for bar in bars] == [f"2026-10-05T10:0{minute}:00Z" for minute in range(3)]
    assert bars[0]["open"] == ticks[0].bid
    quote = api.ask("/api/market/EURUSD/quote").json()
    assert (quote["bid"], quote["ask"]) == (ticks[-1].bid, ticks[-1].ask)
    assert quote["timestamp"] == "2026-10-05T10:02:40.000Z"


def test_trades_alone_leave_no_quote_and_the_refusal_says_where_the_candles_are(
    api: Api, tmp_path: Path
) -> None:
    make_instrument("EURUSD")
    trades = tmp_path / "EURUSD.csv"
    trades.write_text(TRADE)

    import_files(str(trades))

    error = api.ask("/api/market/EURUSD").json()["error"]
    assert error["code"] == "quote_unavailable"
    path = "/api/market/EURUSD/history"
    assert path in error["message"]
    assert api.ask(path).json()["count"] == 1
