"""What the service publishes of its streams: a sample to copy that works, and figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape

import httpx

from market.streams import market_streams as streams
from tests.client import Server
from tests.patience import PATIENCE_S

from .conftest import Open
from .ticker import Ticker


def sample(server: Server, name: str) -> str:
    page = httpx.get(f"{server.url}/docs/without-client", timeout=PATIENCE_S).text
    found = re.search(rf'<pre tabindex="0" id="{name}"><code>(.*?)</code></pre>', page, re.DOTALL)
    assert found
    return unescape(re.sub("<[^>]+>", "", found[1]))


def test_python_sample_subscribes_as_it_stands(service: Server, key: str, symbol: str) -> None:
    code = sample(service, "plain-stream-python")
    code = re.sub(r'"symbols": \["[^"]+"\]', f'"symbols": ["{symbol}"]', code)
    assert sum(map(bool, code.splitlines())) <= 10
    own = {**os.environ, "TICKWIRE_KEY": key}
    command = [sys.executable, "-u", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as running:
        assert running.stdout
        said = running.stdout.readline()
        running.kill()
    assert "'type': 'subscribed'" in said
    assert f"'symbols': ['{symbol}']" in said


def test_each_write_of_a_tick_is_measured_and_each_close_counted_by_its_code(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    hub = streams.prices.hub
    measured, refused = hub.latency.count, hub.closed[4401]
    socket, bad = opened(key=key), opened()
    socket.subscribe(symbol)
    for _ in range(3):
        ticker(symbol)
        socket.hear()
    bad.refused({"action": "subscribe", "symbols": [symbol], "api_key": "no-such-key"})
    assert bad.closed == 4401
    assert socket.is_open
    assert (hub.latency.count, hub.closed[4401]) == (measured + 3, refused + 1)
