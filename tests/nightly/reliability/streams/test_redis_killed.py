"""How soon a thousand clients are told that Redis is gone, and hear again once it is back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.reliability.clients.swarm import Listener
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivateRedis
from tests.reliability.services.processes import Installation
from tests.reliability.streams.test_redis_killed import check, over

CROWD, AWAY_S, TOLD_WITHIN_S, FLOWS_WITHIN_S = 1_000, 15.0, 3.0, 2.0


@pytest.mark.row("7", "clients notified within 3 s, prices flowing again within 2 s, no 5xx from REST")
def test_a_crowd_is_notified_and_hears_again_in_time(
    embedded: Installation, tmp_path: Path, tell: Tell
) -> None:
    redis, statuses, times = PrivateRedis(tmp_path), set[int](), list[float]()
    with redis.running() as url, over(embedded, url) as service, ExitStack() as back:
        key = service.make_key(requests_per_minute=1_000_000)

        def kill(crowd: list[Listener]) -> None:
            times.append(max(late_ms for listener in crowd for late_ms in listener.late_ms) / 1000)
            killed_at = time.time()
            redis.kill()
            while time.time() < killed_at + AWAY_S:
                statuses.add(service.servers[0].ask("/api/symbols", key).status_code)
                time.sleep(0.1)
            wait_until(lambda: all("stale" in listener.notices for listener in crowd))
            times.append(max(listener.notices["stale"] for listener in crowd) / 1000 - killed_at)
            back.enter_context(redis.running())

        flows_after_s = check(service, kill, tell, CROWD)
    late_s, told_after_s = times
    tell(f"all were notified after {told_after_s:.1f} s; prices flowed again after {flows_after_s:.1f} s")
    assert statuses == {200}
    # A machine on which ticks are late is late with notices too.
    assert told_after_s <= TOLD_WITHIN_S + late_s
    assert flows_after_s <= FLOWS_WITHIN_S + late_s
