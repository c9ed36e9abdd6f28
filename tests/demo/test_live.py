"""One demo as `make run` starts it, with two instruments instead of twenty: it is live, with its past."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.contract.streams.client import next_frame
from tests.nightly.demo.conftest import COMPLETE, keys_in, prepare_small
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import Serve

pytestmark = pytest.mark.served


def test_small_demo_is_live_with_its_past_and_ends_cleanly(tmp_path: Path) -> None:
    with Serve(prepare_small(tmp_path / "var")) as running:
        keys = keys_in(running.output)
        client = httpx.Client(
            base_url=running.url, headers={"X-API-Key": keys["premium"]}, timeout=PATIENCE_S
        )

        def get(path: str) -> Any:
            return client.get(path).raise_for_status().json()

        with client:
            with connect(running.url.replace("http", "ws") + "/ws/market", open_timeout=PATIENCE_S) as socket:
                socket.send(
                    json.dumps({"action": "subscribe", "symbols": ["BTCUSD"], "api_key": keys["premium"]})
                )
                frames = [next_frame(socket) for _ in range(4)]
            assert [frame.get("symbol") for frame in frames[1:]] == ["BTCUSD"] * 3
            wait_until(lambda: COMPLETE in running.output)
            for timeframe in ("1m", "1h", "1d"):
                assert len(get(f"/api/market/BTCUSD?bars=500&timeframe={timeframe}")["ohlcv"]) == 500
            assert get("/api/signals?status=closed")["items"]
            assert get("/api/news")["items"]
        assert running.stop() == 0
        assert "Traceback" not in running.output
