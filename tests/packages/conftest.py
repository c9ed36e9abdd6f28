from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.packages import ROOT, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("built"))
