"""Every answer of the API asks browsers for TLS in production, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import START_PATIENCE_S
from tools.lint.production import PRODUCTION

pytestmark = pytest.mark.served

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


@pytest.mark.parametrize(
    ("given", "asked"), [(PRODUCTION, A_YEAR), ({"ALLOWED_HOSTS": "tickwire.example"}, "None")]
)
def test_api_asks_for_tls_in_production_alone(tmp_path: Path, given: dict[str, str], asked: str) -> None:
    environment = os.environ | {"VAR_DIR": str(tmp_path), "DEMO": "0"} | given
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"401 {asked}"] * 2
