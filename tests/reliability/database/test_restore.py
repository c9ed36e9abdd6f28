"""Row 74: a restore waits for nobody to write, and nobody goes on from what it took back."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from market.models import LastQuote
from market.push.keys import issue_ingest_key
from tests.factories import make_instrument
from tests.patience import wait_until
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.services.processes import Installation, Process, http

pytestmark = pytest.mark.row("74", "nobody goes on from data that a restore removed")


def push(server: Process, key: str, bid: float, seq: int) -> None:
    tick = {"symbol": "PUSHED", "bid": bid, "ask": bid + 0.5, "time": time.time_ns() // 1_000_000, "seq": seq}
    answer = http.post(f"{server.url}/ingest/ticks", json=[tick], headers={"X-Ingest-Key": key})
    assert answer.json() == {"accepted": 1, "rejected": []}


def answer_to(server: Process, key: str, **more: Any) -> dict[str, Any]:
    with subscribed(server.port, key, ["PUSHED"], features=["seq"], **more) as (_, answer):
        return answer


def test_no_client_resumes_from_data_that_a_restore_removed(embedded: Installation, tmp_path: Path) -> None:
    file = str(tmp_path / "backup.zip")
    with embedded.orm():
        make_instrument("PUSHED", source="push")
        source = issue_ingest_key("desk", by="test")[1]
    key = embedded.make_key()
    with embedded.serve(1) as (server,):
        push(server, source, 2.0, 1)
        with embedded.orm(only_reads=True):
            wait_until(lambda: LastQuote.objects.filter(bid=2).exists())
        assert embedded.manage("backup", file).returncode == 0
        push(server, source, 3.0, 2)
        before = answer_to(server, key)
        refused = embedded.manage("restore", file, "--replace")
        assert (refused.returncode, "Stop all of its processes" in refused.stderr) == (1, True)
        # Killed, so that the journal has what the database may not have.
        subprocess.run(["kill", "-KILL", str(server.pid)], check=True)
    done = embedded.manage("restore", file, "--replace")
    assert done.returncode == 0, done.stderr
    with embedded.serve(1) as (server,):
        assert server.ask("/api/market/PUSHED/quote", key).json()["bid"] == 2.0
        resume = {"epoch": before["epoch"], "positions": before["positions"]}
        after = answer_to(server, key, resume=resume)
        assert after["epoch"] != before["epoch"]
        assert after["unrecovered"] == ["PUSHED"]
