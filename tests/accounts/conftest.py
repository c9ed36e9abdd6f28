from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests import services
from tests.reliability.faults import PrivateRedis


@pytest.fixture
def alone(settings: Any) -> None:
    """One process, without Redis."""
    settings.REDIS_URL = ""


@pytest.fixture(scope="session")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def shared(own_redis: str, settings: Any) -> str:
    """A Redis that is there for all, and empty."""
    settings.REDIS_URL = own_redis
    with Redis.from_url(own_redis) as client:
        client.flushall()
    return own_redis


@pytest.fixture
def frail(tmp_path: Path, settings: Any) -> PrivateRedis:
    """One that the test starts, kills and pauses."""
    redis = PrivateRedis(tmp_path)
    settings.REDIS_URL = redis.url
    return redis
