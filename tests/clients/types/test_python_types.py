"""The types of the Python client are those of the reference, and a type checker sees them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tickwire import AsyncClient, Client

from market.streams.docs.asyncapi import CHANNELS, document
from news.stream import CHANNEL as NEWS
from signals_feed.stream import CHANNEL as SIGNALS
from tests.contract.openapi.documented import DOCUMENT
from tests.patience import PATIENCE_S
from tools.client_types import FOLDER, modules

pytestmark = pytest.mark.served

USES = Path("tests/clients/types/python_types.py")


def test_types_are_those_of_the_reference() -> None:
    made = modules(DOCUMENT, document((*CHANNELS, SIGNALS, NEWS), "localhost"))
    kept = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert kept == made, "python -m tools.client_types makes them anew"


def test_type_checker_knows_answers_and_frames(tmp_path: Path) -> None:
    """Each line that must not pass is marked as such, so that mypy complains if it does."""
    command: list[str | Path] = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent"]
    command += ["--config-file", os.devnull, "--cache-dir", tmp_path, USES]
    surroundings = os.environ | {"MYPYPATH": "clients/python"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=surroundings)
    assert done.returncode == 0, done.stdout


def test_methods_show_their_parameters_and_what_they_do() -> None:
    for client in (Client("any"), AsyncClient("any")):
        assert list(inspect.signature(client.market).parameters) == [
            "symbol",
            "timeframe",
            "bars",
            "closed_only",
        ]
        assert inspect.getdoc(client.quotes) == inspect.getdoc(Client.quotes)
        assert "empty list is an error" in str(inspect.getdoc(client.quotes))
