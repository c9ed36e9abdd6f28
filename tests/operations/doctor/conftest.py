from __future__ import annotations

import pytest

from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with other things is no server that hangs."""
    for name in ("proxy.PATIENCE_S", "proxy.PROMPT_S", "checks.PATIENCE_S"):
        monkeypatch.setattr(f"operations.doctor.{name}", PATIENCE_S)
