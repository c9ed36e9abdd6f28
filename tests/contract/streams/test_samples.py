"""What /docs/streams gives to copy does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape

import httpx

from tests.client import Server


def sample(server: Server, name: str) -> str:
    page = httpx.get(f"{server.url}/docs/streams").text
    found = re.search(rf'<pre id="{name}"[^>]*><code>(.*?)</code></pre>', page, re.DOTALL)
    assert found
    return unescape(found[1])


def test_python_sample_subscribes_as_it_stands(service: Server, key: str, symbol: str) -> None:
    code = sample(service, "python").replace("YOUR_KEY", key).replace("BTCUSD", symbol)
    assert sum(map(bool, code.splitlines())) <= 10

    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        said = running.stdout.readline()
        running.kill()
    assert "'type': 'subscribed'" in said
    assert f"'symbols': ['{symbol}']" in said
