from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tickwire import AsyncClient, Client, asynchronous, pacing, synchronous

from tests.patience import PATIENCE_S
from tests.programs.npm import require_npm

CLIENT = Path("clients/typescript")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with other things is no service that hangs."""
    for client in (Client, AsyncClient):
        defaults = {"timeout": PATIENCE_S, "retries": 2, "walk_retries": 8}
        monkeypatch.setattr(client.__init__, "__kwdefaults__", defaults)
    for name in ("synchronous", "asynchronous"):
        monkeypatch.setattr(f"tickwire.{name}.SILENCE_S", PATIENCE_S)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the Python client means to wait between its requests; it does not."""
    waits = list[float]()

    async def note(seconds: float) -> None:
        waits.append(seconds)

    for module in (synchronous, pacing):
        monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), "sleep": waits.append}))
    for module in (asynchronous, pacing):
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": note}))
    return waits


@pytest.fixture(scope="session")
def modules() -> Path:
    return require_npm(CLIENT)


@pytest.fixture(scope="session")
def built(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is compiled in the repository, so that users need no compiler, is what its sources say."""
    folder = tmp_path_factory.mktemp("dist")
    command = ["node", str(modules / "typescript/bin/tsc"), "-p", str(CLIENT), "--outDir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout
    kept, made = (
        {path.name: path.read_text() for path in place.iterdir()} for place in (CLIENT / "dist", folder)
    )
    assert kept == made, "clients/typescript/dist is old: run `npm run build` there, and commit it."
