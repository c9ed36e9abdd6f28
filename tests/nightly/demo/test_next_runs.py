"""Starting again, starting empty, and what cannot start."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from tests.patience import wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve

from .conftest import keys_in


@pytest.fixture(scope="module")
def first(var_dir: Path) -> dict[str, str]:
    """The keys of a demo that ran before, with its whole past, and was stopped."""
    with Serve(var_dir) as running:
        wait_until(lambda: httpx.get(f"{running.url}/demo-past.json").json() is None)
        return keys_in(running.output)


def test_a_second_start_keeps_keys_and_candles_and_ctrl_c_ends_it_cleanly(
    first: dict[str, str], var_dir: Path
) -> None:
    with Serve(var_dir) as running:
        headers = {"X-API-Key": first["premium"]}
        ohlcv = httpx.get(f"{running.url}/api/market/BTCUSD?bars=500", headers=headers).json()["ohlcv"]
        assert keys_in(running.output) == first
        assert len(ohlcv) == 500
        # A demo key is refused when the caller names another address.
        headers = {"X-API-Key": first["free"]}
        assert httpx.get(f"{running.url}/api/session", headers=headers).status_code == 200
        for elsewhere in ({"Host": "tickwire.example"}, {"X-Forwarded-For": "203.0.113.9"}):
            assert httpx.get(f"{running.url}/api/session", headers=headers | elsewhere).status_code == 401
        assert running.stop() == 0
    assert running.output.rstrip().endswith("Stopped.")
    assert "Traceback" not in running.output


def test_a_taken_port_is_one_clear_sentence(var_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        ended = manage(var_dir, "serve", PORT=str(port))

    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith(
        f"CommandError: Port {port} is taken. Stop the program that uses it, or choose another: `"
    )
    assert line.endswith(f"manage.py serve --port {port + 1}`")
