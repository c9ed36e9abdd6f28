from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.restarts.test_rolling_restart import roll
from tests.reliability.services.processes import Installation

pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("36", "no REST request failed, no signal lost"),
]


async def test_control_requests_to_a_killed_process_fail(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    seen, _, _ = await roll(scaled, tmp_path, signal.SIGKILL, "UNTOLD")
    tell(f"killed: {dict(seen)}")
    assert set(seen) > {"200"}
