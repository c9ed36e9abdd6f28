from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
