"""The service with PgBouncer before its database: few connections for all, another at each transaction."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.nightly.reliability.drill.damage import harm_of
from tests.nightly.reliability.drill.loaded import Size, under_load
from tests.nightly.reliability.drill.report import lines_of
from tests.patience import wait_until
from tests.programs.pgbouncer import CONNECTIONS, PgBouncer
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation

SIZE, AWAY_S = Size(20, 20.0), 3.0
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("8, PgBouncer", "nothing acknowledged lost, no 500"),
]


def test_few_pooled_connections_serve_everyone_and_may_break(tmp_path: Path, tell: Tell) -> None:
    database, redis = PrivatePostgres(tmp_path, is_forgetful=False), RedisNode(tmp_path / "redis", FORGETFUL)
    with database.running(), redis.running(), ExitStack() as pooling:
        bouncer = PgBouncer(tmp_path, database.url)
        pooling.enter_context(bouncer.running())
        installation = Installation(tmp_path, bouncer.url, f"redis://127.0.0.1:{redis.port}/0")

        def restart() -> None:
            pooling.close()
            time.sleep(AWAY_S)
            pooling.enter_context(bouncer.running())

        with under_load(installation, SIZE, environment={"DATABASE_POOLER": "transaction"}) as loaded:
            damage = loaded.measure("PgBouncer restarted", restart)
            before = len(loaded.signals.acknowledged)
            wait_until(lambda: len(loaded.signals.acknowledged) > before)
            # Those of the program are more than PgBouncer has of its own.
            clients, servers = (len(bouncer.shown(what)) for what in ("CLIENTS", "SERVERS"))
    tell(f"{clients} connections of Tickwire shared {servers} to PostgreSQL; away for {AWAY_S:.0f} s")
    for line in lines_of(damage):
        tell(line)
    assert servers <= CONNECTIONS + 1 < clients
    assert harm_of(damage) == []
