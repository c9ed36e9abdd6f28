"""A master that was cut off refuses writes if it is told to: nothing is counted that would be thrown away."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from accounts.limits.redis_window import RedisWindow, limit_fallbacks
from core.redis.connections import connect_redis
from tests.accounts.counters import value_of
from tests.programs.redis_group import FORGETFUL, RedisNode

pytestmark = pytest.mark.served

# As docs/operate/redis-and-postgresql.md says it.
CAREFUL = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "5")
LIMIT = 3


async def test_limits_are_counted_per_process_meanwhile(tmp_path: Path) -> None:
    master = RedisNode(tmp_path, (*FORGETFUL, *CAREFUL))
    with master.running():
        url = f"redis://127.0.0.1:{master.port}/0"
        client = connect_redis(url)
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            await client.set("fact", "1")
        await client.aclose()
        window, before = RedisWindow(url), value_of(limit_fallbacks)
        admitted = [(await window.ask("account:1", LIMIT, 1)).admitted for _ in range(2 * LIMIT)]
        await window.close()
    assert sum(admitted) == LIMIT
    assert value_of(limit_fallbacks) - before == 2 * LIMIT
