"""The samples of the guides run as they stand, with a key in the environment."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal

import pytest

from pages.documents import files
from pages.documents.contents import GUIDES
from pages.documents.files import FOLDER
from pages.documents.reference.operations import operations
from pages.documents.reference.requests import requests
from tests.client import Api, Server
from tests.pages.documents.test_samples import run
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.served

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SAMPLES = [
    pytest.param(text, id=f"{name}-{number}")
    for name in GUIDES
    for number, text in enumerate(BLOCK.findall((FOLDER / f"{name}.md").read_text()))
]


@pytest.mark.parametrize("text", SAMPLES)
def test_sample_names_nothing_that_it_does_not_define(text: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F821", "-"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", files.names())
def test_command_is_copied_without_a_prompt_and_what_it_prints(name: str) -> None:
    assert re.findall(r"^\s*\$ .*", (FOLDER / f"{name}.md").read_text(), re.MULTILINE) == []


def test_samples_about_signals_check_what_the_service_says(server: Server, api: Api) -> None:
    signal = make_published()
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    proof, ledger = BLOCK.findall((FOLDER / "signals.md").read_text())
    (checked,) = run(api.key, sys.executable, "-c", proof.replace("http://127.0.0.1:8000", server.url))
    assert checked.startswith(str(signal.pk))
    (line,) = run(api.key, sys.executable, "-c", ledger.replace("http://127.0.0.1:8000", server.url))
    assert line.startswith("2 entries, the last with the hash ")


def test_sample_of_a_file_fails_where_there_is_none() -> None:
    texts = requests(operations()["getArchiveFile"], "http://127.0.0.1:8000", {})
    assert texts["shell"].startswith("curl --fail ")
    assert "if (!file.ok) throw" in texts["javascript"]
