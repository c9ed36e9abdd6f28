from __future__ import annotations

import re
from pathlib import Path

from tests.contract.streams import on_daphne

from . import servers


def test_what_daphne_cannot_do_is_said_of_tests_that_exist() -> None:
    """Only the night runs them on daphne: a test that is renamed would fail there."""
    files = Path(__file__).parents[1].rglob("test_*.py")
    tests = {f"{file.name}::{name}" for file in files for name in re.findall(r"def (\w+)", file.read_text())}
    excepted = [*on_daphne.EXCEPTED, *servers.EXCEPTED, *servers.LEFT_OUT]
    assert {name.partition("[")[0] for name in excepted} <= tests
