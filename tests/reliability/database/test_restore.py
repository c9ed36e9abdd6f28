"""Row 74: a restore waits for nobody to write, and nobody goes on from what it took back."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from market.models import LastQuote
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.services.processes import Installation, Process, http

pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("74", "nobody goes on from data that a restore removed"),
]


def push(server: Process, key: str, bid: float, seq: int) -> None:
    tick = {"symbol": "PUSHED", "bid": bid, "ask": bid + 0.5, "time": time.time_ns() // 1_000_000, "seq": seq}
    answer = http.post(f"{server.url}/ingest/ticks", json=[tick], headers={"X-Ingest-Key": key})
    assert answer.json() == {"accepted": 1, "rejected": []}


def subscribed(server: Process, key: str, **more: Any) -> dict[str, Any]:
    with connect(f"ws://127.0.0.1:{server.port}/ws/market", open_timeout=PATIENCE_S) as socket:
        wanted = {"action": "subscribe", "symbols": ["PUSHED"], "features": ["seq"], "api_key": key}
        socket.send(json.dumps(wanted | more))
        answer: dict[str, Any] = json.loads(socket.recv(PATIENCE_S))
        assert answer["type"] == "subscribed", answer
        return answer


def test_no_client_resumes_from_data_that_a_restore_removed(embedded: Installation, tmp_path: Path) -> None:
    file = str(tmp_path / "backup.zip")
    with embedded.orm():
        make_instrument("PUSHED", source="push")
        source = issue_ingest_key("desk", by="test")[1]
        key = make_key(make_account(tier=make_tier("roomy")))
    with embedded.serve(1) as (server,):
        push(server, source, 2.0, 1)
        with embedded.orm(only_reads=True):
            wait_until(lambda: LastQuote.objects.filter(bid=2).exists())
        assert embedded.manage("backup", file).returncode == 0
        push(server, source, 3.0, 2)
        before = subscribed(server, key)
        refused = embedded.manage("restore", file, "--replace")
        assert (refused.returncode, "Stop all of its processes" in refused.stderr) == (1, True)
        # Killed, so that the journal has what the database may not have.
        subprocess.run(["kill", "-KILL", str(server.pid)], check=True)
    done = embedded.manage("restore", file, "--replace")
    assert done.returncode == 0, done.stderr
    with embedded.serve(1) as (server,):
        assert server.ask("/api/market/PUSHED/quote", key).json()["bid"] == 2.0
        resume = {"epoch": before["epoch"], "positions": before["positions"]}
        after = subscribed(server, key, resume=resume)
        assert after["epoch"] != before["epoch"]
        assert after["unrecovered"] == ["PUSHED"]
