"""Production as a person meets it: what it refuses, by the command that checks and at any server's start, and
that every answer of the API asks browsers for TLS there, and nowhere else. And how a process stops."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import asgi
from tests.patience import START_PATIENCE_S
from tests.programs.commands import manage
from tests.programs.running import environment
from tools.lint.production import PRODUCTION

pytestmark = pytest.mark.served

WEAK = PRODUCTION | {"SECRET_KEY": "changeme" * 8, "ALLOWED_HOSTS": "*"}
# As uvicorn or daphne does, which run no checks.
START = "import config.asgi"
ASK = """
import asyncio
import httpx
from config.asgi import answer_api

async def ask():
    transport = httpx.ASGITransport(answer_api)
    async with httpx.AsyncClient(transport=transport, base_url="https://tickwire.example") as client:
        for path in ("/api/symbols", "/api/none"):
            answer = await client.get(path)
            print(answer.status_code, answer.headers.get("Strict-Transport-Security"))

asyncio.run(ask())
"""
A_YEAR = "max-age=31536000; includeSubDomains; preload"


def run(program: str, var_dir: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment(var_dir, **settings),
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        check=False,
    )


def test_a_weak_secret_and_any_host_are_named_and_start_no_server(tmp_path: Path) -> None:
    checked = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **WEAK)
    assert checked.returncode == 1
    assert set(re.findall(r"tickwire\.\w+", checked.stderr)) == {"tickwire.E002", "tickwire.E005"}
    refused, started = run(START, tmp_path, WEAK), run(START, tmp_path, PRODUCTION)
    assert refused.returncode == 1
    assert "PRODUCTION=1 does not start like this" in refused.stderr
    assert (started.returncode, started.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "asked"), [(PRODUCTION, A_YEAR), ({"ALLOWED_HOSTS": "tickwire.example", "DEMO": "0"}, "None")]
)
def test_api_asks_for_tls_in_production_alone(tmp_path: Path, given: dict[str, str], asked: str) -> None:
    done = run(ASK, tmp_path, given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"401 {asked}"] * 2


def test_a_part_that_fails_to_stop_keeps_none_of_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopped: list[str] = []

    def fail() -> None:
        raise OSError("No space left on device")

    parts = ((None, lambda: stopped.append("first")), (None, fail), (None, lambda: stopped.append("last")))
    monkeypatch.setattr(asgi, "BACKGROUND", parts)
    asyncio.run(asgi.Service().stop())
    assert stopped == ["last", "first"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
