from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.conftest import Tell

from .upgrading import over, upgraded

pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("upgrade", "nothing acknowledged lost, no connection closed without notice")
async def test_an_upgrade_loses_nothing(tmp_path: Path, tell: Tell) -> None:
    await over(upgraded, tmp_path, tell)
