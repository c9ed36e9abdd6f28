"""What /docs/without-client gives to copy of a stream does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape

import httpx

from tests.client import Server
from tests.patience import PATIENCE_S


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
