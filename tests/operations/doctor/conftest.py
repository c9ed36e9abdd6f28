from __future__ import annotations

import pytest

from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with other things is no server that hangs."""
    for name in ("public_address.PATIENCE_S", "proxy_socket.PATIENCE_S", "proxy_socket.PROMPT_S"):
        monkeypatch.setattr(f"operations.doctor.{name}", PATIENCE_S)
    monkeypatch.setattr("operations.doctor.redis_server.PATIENCE_S", PATIENCE_S)
