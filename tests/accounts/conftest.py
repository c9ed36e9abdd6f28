from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accounts.login import sessions
from tests.reliability.services.private_servers import PrivateRedis


@pytest.fixture
def alone(settings: Any) -> None:
    """One process, without Redis."""
    settings.REDIS_URL = ""


@pytest.fixture
def frail(tmp_path: Path, settings: Any) -> PrivateRedis:
    """One that the test starts, kills and pauses."""
    redis = PrivateRedis(tmp_path)
    settings.REDIS_URL = redis.url
    return redis


@pytest.fixture(autouse=True)
def _one_minute(_new_strangers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All visits of a test are of one moment, however long a busy machine takes for them."""
    monkeypatch.setattr(sessions.strangers.window, "clock_ns", lambda: 0)
