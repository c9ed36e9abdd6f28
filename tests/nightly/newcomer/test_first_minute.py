"""The README's first command, as a newcomer types it into a fresh clone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.patience import PATIENCE_S, START_PATIENCE_S, wait_until
from tests.programs.running import environment, interruptible
from tests.programs.services import free_port

ROOT = Path(__file__).resolve().parents[3]
# Of the demo's instruments one that trades around the clock.
SYMBOL = "BTCUSD"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "tickwire"
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, folder], check=True)
    return folder


def of_a_person(clone: Path, **changes: str) -> dict[str, str]:
    """With uv, as many have it; without what this run set for itself."""
    own = environment(clone / "var", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **changes)
    without = {"VAR_DIR", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH"}
    without |= {"DJANGO_SETTINGS_MODULE"}
    return {name: value for name, value in own.items() if name not in without}


@contextmanager
def make_run(clone: Path, port: int) -> Iterator[Path]:
    """What it writes, until Ctrl-C."""
    output = clone.parent / "output.txt"
    with output.open("wb") as log, interruptible():
        run = subprocess.Popen(
            ["make", "run", f"PYTHON={sys.executable}"],
            cwd=clone,
            env=of_a_person(clone, PORT=str(port)),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield output
    finally:
        os.killpg(run.pid, signal.SIGINT)
        run.wait(PATIENCE_S)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False


def first_tick(port: int, key: str) -> dict[str, object]:
    with connect(f"ws://127.0.0.1:{port}/ws/market", open_timeout=PATIENCE_S) as stream:
        stream.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
        while "bid" not in (message := json.loads(stream.recv(PATIENCE_S))):
            pass
    return dict(message)


def key_in(output: Path) -> str:
    words = output.read_text().split()
    return words[words.index("pro") + 1]


def test_one_command_in_a_fresh_clone_leads_to_live_prices(
    clone: Path, record_property: Callable[[str, object], None]
) -> None:
    port = free_port()
    page, began = f"http://127.0.0.1:{port}/", time.monotonic()

    def tell(what: str) -> None:
        record_property("number", f"{time.monotonic() - began:.1f} s to {what}")

    with make_run(clone, port) as output:
        wait_until((clone / ".venv/.run").exists, START_PATIENCE_S)
        tell("the packages")
        wait_until(lambda: answers(page), START_PATIENCE_S)
        tell("the first page")
        wait_until(lambda: "Ctrl-C stops it." in output.read_text())
        tick = first_tick(port, key_in(output))
        tell("the first tick")
        terminal = httpx.get(page).text

    assert tick["symbol"] == SYMBOL
    assert SYMBOL in terminal
    began = time.monotonic()
    with make_run(clone, port):
        wait_until(lambda: answers(page), START_PATIENCE_S)
        tell("the first page, started again")
    assert not subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone, capture_output=True, check=True
    ).stdout, "running it leaves traces in the clone that git does not ignore"
