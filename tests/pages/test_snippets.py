"""What the quick start shows is run as a reader would run it: copied from the page, with a key put in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape

import httpx
import pytest

from core import clock
from core.times import iso_s
from market.prices.candles import TIMEFRAMES, interval_start
from tests.client import Api, Server
from tests.contract.market.stored_minutes import NOON_MS, minutes, store
from tests.contract.streams.ticker import ticking
from tests.factories import make_instrument, put_candles, put_quote
from tests.patience import PATIENCE_S

BID, ASK = 91842.61, 91846.35


@pytest.fixture
def quoted(server: Server) -> None:
    make_instrument("EURUSD")
    make_instrument("BTCUSD", digits=2)
    put_quote("BTCUSD", BID, ASK)
    now_ms, step_ms = interval_start(clock.now_ms(), TIMEFRAMES["5m"]), TIMEFRAMES["5m"]
    put_candles("BTCUSD", "5m", [now_ms - 2 * step_ms, now_ms - step_ms])


def snippet(server: Server, name: str, key: str) -> str:
    page = httpx.get(f"{server.url}/docs").text
    found = re.search(rf'<pre tabindex="0" id="{name}"><code>(.*?)</code>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1]).replace("YOUR_KEY", key)


def run(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_shell(quoted: None, server: Server, api: Api) -> None:
    text = snippet(server, "curl", api.key).replace("curl ", "curl --silent --show-error --write-out '\\n' ")
    quote, candles = map(json.loads, run("bash", "-ec", text))
    assert (quote["bid"], quote["ask"]) == (BID, ASK)
    assert len(candles["ohlcv"]) == 2


def test_python(quoted: None, server: Server, api: Api) -> None:
    first, *candles = run(sys.executable, "-c", snippet(server, "python", api.key))
    assert first == f"{BID} {ASK}"
    assert len(candles) == 2


def test_javascript(quoted: None, server: Server, api: Api) -> None:
    first, *candles = run("node", "--input-type=module", "-e", snippet(server, "javascript", api.key))
    assert first == f"{BID} {ASK}"
    assert len(candles) == 2


def test_python_history(server: Server, api: Api) -> None:
    make_instrument("BTCUSD", digits=2)
    store("BTCUSD", minutes(3), "5m")
    text = snippet(server, "history-python", api.key)
    # Small pages, so that there are several, and a span in which something is stored.
    fitted = text.replace("10_000", "2").replace("2026-01-01T00:00Z", iso_s(NOON_MS))
    lines = run(sys.executable, "-c", fitted)
    assert [line.split()[0] for line in lines] == [iso_s(NOON_MS + n * 60_000) for n in range(3)]
    assert fitted.count('"limit": 2') == 1


def test_python_stream(quoted: None, server: Server, api: Api) -> None:
    text = snippet(server, "stream-python", api.key)
    process = subprocess.Popen([sys.executable, "-uc", text], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "'type': 'subscribed'" in process.stdout.readline()
        with ticking(server) as ticker:
            (tick,) = ticker("EURUSD")
        assert f"'bid': {tick.bid}" in process.stdout.readline()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
