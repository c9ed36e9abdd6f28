from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.programs.npm import require_npm

CLIENT = Path("clients/typescript")


@pytest.fixture(scope="session")
def modules() -> Path:
    return require_npm(CLIENT)


@pytest.fixture(scope="session")
def built(modules: Path) -> None:
    command = ["node", str(modules / "typescript/bin/tsc"), "-p", str(CLIENT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout
