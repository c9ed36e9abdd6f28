from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.programs.services import redis as redis_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("bus")) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Redis]:
    with Redis.from_url(url) as client:
        client.flushdb()
        yield client
