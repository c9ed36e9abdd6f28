"""What the documentation gives to copy is run as a reader would run it, with a key in the environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from html import unescape
from pathlib import Path
from select import select

import httpx
import pytest

from core import clock
from core.times import iso_s
from market.prices.candles import TIMEFRAMES, interval_start
from pages.documents.contents import GUIDES
from pages.documents.rendering import FOLDER
from tests.client import Api, Server
from tests.clients.conftest import CLIENT
from tests.clients.conftest import built as built
from tests.clients.conftest import modules as modules
from tests.contract.market.stored_minutes import NOON_MS, minutes, store
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_instrument, put_candles, put_quote
from tests.patience import PATIENCE_S
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.served

BID, ASK = 91842.61, 91846.35


@pytest.fixture
def quoted(server: Server) -> None:
    make_instrument("EURUSD")
    make_instrument("BTCUSD", digits=2)
    put_quote("BTCUSD", BID, ASK)
    now_ms, step_ms = interval_start(clock.now_ms(), TIMEFRAMES["5m"]), TIMEFRAMES["5m"]
    put_candles("BTCUSD", "5m", [now_ms - 2 * step_ms, now_ms - step_ms])


def snippet(server: Server, path: str, name: str) -> str:
    page = httpx.get(f"{server.url}{path}", timeout=PATIENCE_S).text
    found = re.search(rf'<pre tabindex="0" id="{name}"><code>(.*?)</code>', page, re.DOTALL)
    assert found is not None
    return unescape(re.sub(r"<[^>]+>", "", found[1]))


def environment(key: str) -> dict[str, str]:
    return {**os.environ, "TICKWIRE_KEY": key, "PYTHONPATH": "clients/python"}


def run(key: str, *command: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment(key), cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def installed(built: None, tmp_path: Path) -> Path:
    """A folder in which the TypeScript client is installed."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/tickwire").symlink_to(CLIENT.resolve())
    return tmp_path


def run_module(key: str, text: str, folder: Path) -> list[str]:
    (folder / "sample.mjs").write_text(text)
    return run(key, "node", "sample.mjs", cwd=folder)


PLACES = [("/docs", ""), ("/docs/without-client", "plain-")]


@pytest.mark.parametrize(("path", "kind"), PLACES)
def test_quote_and_candles(
    quoted: None, server: Server, api: Api, installed: Path, path: str, kind: str
) -> None:
    begin = kind or "quote-"
    text = snippet(server, path, f"{begin}shell").replace("curl ", "curl --silent --show-error ")
    quote, candles = map(json.loads, run(api.key, "bash", "-ec", text))
    assert (quote["bid"], quote["ask"], len(candles["ohlcv"])) == (BID, ASK, 2)
    python = run(api.key, sys.executable, "-c", snippet(server, path, f"{begin}python"))
    javascript = run_module(api.key, snippet(server, path, f"{begin}javascript"), installed)
    assert [(lines[0], len(lines)) for lines in (python, javascript)] == [(f"{BID} {ASK}", 3)] * 2


def fitted(text: str) -> str:
    """A span in which something is stored, and small pages, so that there are several."""
    return text.replace("10_000", "2").replace("2026-01-01T00:00Z", iso_s(NOON_MS))


STORED = [iso_s(NOON_MS + n * 60_000) for n in range(3)]


@pytest.mark.parametrize(("path", "kind"), PLACES)
def test_history(server: Server, api: Api, installed: Path, path: str, kind: str) -> None:
    make_instrument("BTCUSD", digits=2)
    store("BTCUSD", minutes(3), "5m")
    python, javascript = (
        fitted(snippet(server, path, f"{kind}history-{language}")) for language in ("python", "javascript")
    )
    for lines in (run(api.key, sys.executable, "-c", python), run_module(api.key, javascript, installed)):
        assert [line.split()[0] for line in lines] == STORED


def test_refusal_is_caught(quoted: None, server: Server, api: Api, installed: Path) -> None:
    python = run(api.key, sys.executable, "-c", snippet(server, "/docs/clients", "errors-python"))
    javascript = run_module(api.key, snippet(server, "/docs/clients", "errors-javascript"), installed)
    assert (python, javascript) == (["400 invalid_timeframe timeframe"], ["404 symbol_not_found"])


def next_line(process: subprocess.Popen[str], ticker: Ticker) -> tuple[str, set[str]]:
    """Ticks until something is printed: what it is, and the bids that there have been."""
    assert process.stdout is not None
    bids: set[str] = set()
    while not select([process.stdout], [], [], 0.2)[0]:
        bids |= {str(tick.bid) for tick in ticker("EURUSD")}
    return process.stdout.readline(), bids


@pytest.mark.parametrize(
    ("path", "name", "lines"),
    [("/docs", "stream-python", 1), ("/docs/without-client", "plain-stream-python", 2)],
)
def test_python_stream(server: Server, api: Api, path: str, name: str, lines: int) -> None:
    make_instrument("EURUSD")
    command = [sys.executable, "-uc", snippet(server, path, name)]
    own = environment(api.key)
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as process,
        ticking(server) as ticker,
    ):
        heard, bids = "", set[str]()
        for _ in range(lines):
            heard, ticked = next_line(process, ticker)
            bids |= ticked
        process.kill()
    assert "EURUSD" in heard
    assert any(bid in heard for bid in bids)


BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SAMPLES = [
    pytest.param(text, id=f"{name}-{number}")
    for name in GUIDES
    for number, text in enumerate(BLOCK.findall((FOLDER / f"{name}.md").read_text()))
]


@pytest.mark.parametrize("text", SAMPLES)
def test_sample_names_nothing_that_it_does_not_define(text: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F821", "-"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_samples_about_signals_check_what_the_service_says(server: Server, api: Api) -> None:
    signal = make_published()
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    proof, ledger = BLOCK.findall((FOLDER / "signals.md").read_text())
    (checked,) = run(api.key, sys.executable, "-c", proof.replace("http://127.0.0.1:8000", server.url))
    assert checked.startswith(str(signal.pk))
    (line,) = run(api.key, sys.executable, "-c", ledger.replace("http://127.0.0.1:8000", server.url))
    assert line.startswith("2 entries, the last with the hash ")
