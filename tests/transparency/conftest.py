from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transparency.remembered import FILE


@pytest.fixture
def known_file(tmp_path: Path, settings: Any) -> Path:
    """Of an installation of its own."""
    settings.VAR_DIR = tmp_path
    return tmp_path / FILE
