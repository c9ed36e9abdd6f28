"""A server fails for good and another takes over: Redis by Sentinel, PostgreSQL by promotion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.nightly.reliability.drill.damage import MINUTE_S, Damage, harm_of
from tests.nightly.reliability.drill.faults import fail_over_postgresql, fail_over_redis, freeze_redis
from tests.nightly.reliability.drill.loaded import Size, under_load
from tests.nightly.reliability.drill.report import lines_of
from tests.patience import wait_until
from tests.programs.redis_group import RedisGroup
from tests.reliability.conftest import Tell
from tests.reliability.services.engine_processes import RUNS
from tests.reliability.services.postgres_pair import PostgresPair
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation

SIZE = Size(1_000, 200.0, 20)
SILENT_WITHIN_S = 10.0
pytestmark = [pytest.mark.usefixtures("rows")]


def show(damage: Damage, tell: Tell) -> None:
    for line in lines_of(damage):
        tell(line)


@pytest.mark.row(
    "7, Sentinel",
    "nothing lost without notice or after acknowledgement, no more requests admitted than "
    "documented, normal operation within 10 s",
)
@pytest.mark.parametrize("fault", [fail_over_redis, freeze_redis], ids=["killed", "frozen"])
def test_a_redis_replica_takes_over(tmp_path: Path, tell: Tell, fault: Callable[[RedisGroup], None]) -> None:
    database, group = PrivatePostgres(tmp_path), RedisGroup(tmp_path / "redis")
    installation = Installation(tmp_path, database.url, group.url)
    with database.running(), group.running(), under_load(installation, SIZE) as loaded:
        damage = loaded.measure("Redis failed over", partial(fault, group), MINUTE_S)
    show(damage, tell)
    assert harm_of(damage) == []
    assert set(damage.statuses) == {200}
    assert damage.silent_s <= SILENT_WITHIN_S


@pytest.mark.row("8, 53, PostgreSQL fails over", "nothing acknowledged lost, no 500, never two leaders")
def test_a_postgresql_standby_is_promoted(tmp_path: Path, tell: Tell) -> None:
    pair, group = PostgresPair(tmp_path), RedisGroup(tmp_path / "redis", replicas=0)
    with pair.running(), group.nodes[0].running():
        installation = Installation(tmp_path, pair.url, f"redis://127.0.0.1:{group.nodes[0].port}/0")
        with under_load(installation, SIZE) as loaded:
            damage = loaded.measure("PostgreSQL failed over", lambda: fail_over_postgresql(pair))
            # Who writes goes on by itself, and one engine has led all the time.
            before = len(loaded.signals.acknowledged)
            wait_until(lambda: len(loaded.signals.acknowledged) > before)
            assert sum(engine.said(RUNS) for engine in loaded.engines) == 1
    show(damage, tell)
    assert harm_of(damage) == []
    assert damage.silent_s <= SILENT_WITHIN_S
