"""The contract of the streams on daphne, in one process and over Redis. What it cannot do, and why, stands in
tests/contract/streams/on_daphne.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import ROOT

PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/streams"]
ENDS_WITHIN_S = 240.0
# A run of its own, and no part of the one that starts it.
INHERITED = ("PYTEST_", "DATABASE_URL", "REDIS_URL", "VAR_DIR")


@pytest.mark.row("contract on daphne", "everything except what that server cannot do")
@pytest.mark.parametrize(
    "command", [PYTEST, ["-m", "tests.programs.scaled", *PYTEST]], ids=["embedded", "scaled"]
)
def test_the_contract_of_the_streams_holds_on_daphne(command: list[str], tell: Tell) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=kept | {"STREAMS_ON": "daphne"},
        timeout=ENDS_WITHIN_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:]
    counted = {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|xfailed)", done.stdout)}
    tell(f"{counted['passed']} tests pass, {counted['xfailed']} are excepted")
