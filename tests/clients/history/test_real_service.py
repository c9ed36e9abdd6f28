"""Walks over the real service: what the clients read is what `export_candles` writes."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pandas
import pyarrow
import pytest
from django.core.management import call_command
from tickwire import AsyncClient, Candle, Client, WalkInterrupted

from tests.client import Server
from tests.contract.market.stored_minutes import NOON_MS, minutes, store
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import PATIENCE_S, until
from tests.reliability.clients.proxy import Proxy

pytestmark = pytest.mark.served

STORED = 2_345
MINUTE_MS = 60_000


@pytest.fixture
def key(server: Server) -> str:
    make_instrument("EURUSD")
    store("EURUSD", minutes(STORED))
    return make_key(make_account(tier=make_tier("roomy", requests_per_minute=1_000)))


@pytest.fixture
def client(server: Server, key: str) -> Iterator[Client]:
    with Client(key, server.url) as made:
        yield made


def exported(form: str = "csv") -> str:
    written = io.StringIO()
    call_command("export_candles", "EURUSD", "1m", format=form, stdout=written)
    return written.getvalue()


Walked = Callable[[str, str], Awaitable[list[Candle]]]


async def walk_waiting(url: str, key: str) -> list[Candle]:
    def walk() -> list[Candle]:
        came: list[Candle] = []
        with Client(key, url) as client:
            for candle in client.history("EURUSD", "1m", limit=200):
                came.append(candle)
                if len(came) == STORED // 2:
                    store("EURUSD", minutes(500, STORED))
        return came

    return await asyncio.to_thread(walk)


async def walk_asynchronously(url: str, key: str) -> list[Candle]:
    came: list[Candle] = []
    async with AsyncClient(key, url) as client:
        async for candle in client.history("EURUSD", "1m", limit=200):
            came.append(candle)
            if len(came) == STORED // 2:
                await asyncio.to_thread(store, "EURUSD", minutes(500, STORED))
    return came


@pytest.mark.parametrize("walked", [walk_waiting, walk_asynchronously], ids=["Client", "AsyncClient"])
def test_connections_that_are_cut_anywhere_lose_and_repeat_nothing(
    server: Server, key: str, walked: Walked
) -> None:
    async def walk() -> tuple[list[Candle], int]:
        async with Proxy([server.port], Random(17), mean_s=60, mean_bytes=8_000) as proxy:
            came = await walked(f"http://127.0.0.1:{proxy.port}", key)
            # The connections that were cut end before the loop does.
            await until(lambda: len(asyncio.all_tasks()) == 1)
        return came, proxy.cuts

    came, cuts = asyncio.run(walk())
    assert came == [json.loads(line) for line in exported("jsonl").splitlines()]
    assert len(came) == STORED + 500
    assert cuts >= 3


def test_command_writes_what_the_export_does(server: Server, key: str, tmp_path: Path) -> None:
    file = tmp_path / "candles.csv"
    own = {"TICKWIRE_URL": server.url, "TICKWIRE_KEY": key, "PYTHONPATH": "clients/python"}
    words = ["candles", "EURUSD", "1m", "--csv", "--start", "2020-01-01", "--output", str(file)]
    command = [sys.executable, "-m", "tickwire", *words]
    subprocess.run(command, env=os.environ | own, check=True, timeout=PATIENCE_S)
    assert file.read_text() == exported()
    file.write_text(exported()[:30_000])
    subprocess.run([*command, "--resume"], env=os.environ | own, check=True, timeout=PATIENCE_S)
    assert file.read_text() == exported()


def test_walk_waits_for_an_allowance_that_is_used_up(server: Server, key: str, waits: list[float]) -> None:
    slow = make_key(make_account(make_user("small"), tier=make_tier("small", requests_per_minute=1)))
    with Client(slow, server.url, retries=0, walk_retries=0) as impatient:
        pages = impatient.history("EURUSD", "1m", limit=2_000).pages()
        assert len(next(pages)) == 2_000
        # The wait is skipped here, so that the service refuses.
        with pytest.raises(WalkInterrupted, match="1 attempts") as ended:
            next(pages)
    assert 0 < waits[0] <= 60
    cause: Any = ended.value.__cause__
    assert (cause.code, 0 < cause.retry_after <= 60) == ("rate_limit_exceeded", True)


def test_tables_hold_the_same_whatever_they_are_of(client: Client) -> None:
    history = client.history("EURUSD", "1m", limit=500)
    frame, table = history.to_pandas(), history.to_arrow()
    expected = pandas.read_csv(io.StringIO(exported()), index_col="time", parse_dates=["time"])
    assert list(frame.index) == list(expected.index)
    assert (frame.to_numpy() == expected.to_numpy()).all()
    assert table.column_names == ["time", *expected.columns]
    assert table["time"].cast(pyarrow.int64()).to_pylist() == [NOON_MS + n * MINUTE_MS for n in range(STORED)]
    assert history.to_polars()["close"].to_list() == expected["close"].to_list()
