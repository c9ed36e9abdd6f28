"""The demo over PostgreSQL and Redis: workers that serve, an engine beside them, and a past that all of them
hear of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import Serve, environment
from tests.programs.services import postgres, redis

from .conftest import COMPLETE, keys_in
from .small import PREPARE, run

WORKERS = [sys.executable, "manage.py", "serve", "--workers", "2"]


def lengths(running: Serve, timeframe: str) -> set[int]:
    """As several requests see it, whichever worker answers; 0 where one is refused, as before the first quote
    comes, or when a slow machine has asked for too long."""
    headers = {"X-API-Key": keys_in(running.output)["premium"]}
    query = {"timeframe": timeframe, "bars": "500"}
    address = f"{running.url}/api/market/BTCUSD"
    answers = [httpx.get(address, params=query, headers=headers, timeout=PATIENCE_S) for _ in range(8)]
    return {len(answer.json().get("ohlcv", ())) for answer in answers}


def test_every_process_has_the_past_once_it_is_made(tmp_path: Path) -> None:
    with postgres(tmp_path) as database_url, redis(tmp_path) as redis_url:
        var_dir = tmp_path / "var"
        urls: dict[str, str] = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        run(var_dir, PREPARE, **urls)
        with (
            Serve(var_dir, **urls).as_typed(WORKERS, Path.cwd()) as running,
            (tmp_path / "engine.log").open("wb") as log,
            subprocess.Popen(
                [sys.executable, "manage.py", "run_engine"],
                env=environment(var_dir, **urls),
                stdout=log,
                stderr=log,
            ) as engine,
        ):
            try:
                wait_until(lambda: COMPLETE in running.output)
                wait_until(lambda: all(lengths(running, each) == {500} for each in ("1m", "1h", "1d")))
                assert httpx.get(f"{running.url}/demo-past.json").json() is None
            finally:
                engine.terminate()
        assert running.output.count(COMPLETE) == 1
        assert "wait for a table" not in running.output
        assert "Traceback" not in running.output + (tmp_path / "engine.log").read_text()
