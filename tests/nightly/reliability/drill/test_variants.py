"""A whole installation behind PgBouncer, with few connections for all, another at each transaction; and as a
user of Redis that may touch only what begins with its prefix, by the rule of
docs/operate/redis-and-postgresql.md."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.nightly.reliability.drill.damage import harm_of
from tests.nightly.reliability.drill.loaded import SYMBOLS, Size, under_load
from tests.nightly.reliability.drill.report import lines_of
from tests.patience import wait_until
from tests.programs.pgbouncer import CONNECTIONS, PgBouncer
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation

POOLED, AWAY_S = Size(20, 20.0), 3.0


@pytest.mark.row("8, PgBouncer", "nothing acknowledged lost, no 500")
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

        with under_load(installation, POOLED, environment={"DATABASE_POOLER": "transaction"}) as loaded:
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


PAGE = ROOT / "docs/operate/redis-and-postgresql.md"
RULE = re.compile(r"^ACL SETUSER (.*)$", re.MULTILINE)
SMALL = Size(10, 20.0)


def names(node: RedisNode) -> set[str]:
    with node.client as client:
        found: Any = client.keys("*")
    return {name.decode().partition(":")[0] for name in found}


@pytest.mark.row("7", "no command refused, no key of another application touched")
def test_the_documented_redis_permissions_are_sufficient(tmp_path: Path, tell: Tell) -> None:
    (rule,) = RULE.findall(PAGE.read_text())
    nodes = limits, bus = [RedisNode(tmp_path / name, FORGETFUL) for name in ("limits", "bus")]
    database = PrivatePostgres(tmp_path)
    with database.running(), limits.running(), bus.running():
        for node in nodes:
            with node.client as client:
                client.execute_command("ACL", "SETUSER", *rule.split())
        urls = [f"redis://tickwire:change-me@127.0.0.1:{node.port}/0" for node in nodes]
        installation = Installation(tmp_path, database.url, urls[0])
        environment = {"REDIS_PREFIX": "eu", "BUS_REDIS_URL": urls[1]}
        with under_load(installation, SMALL, environment=environment) as loaded:
            damage = loaded.measure("nothing", lambda: None)
            server = loaded.ports[0]
            found = names(limits), names(bus)
            analysis = loaded.ask(f"http://127.0.0.1:{server}/api/analysis/{SYMBOLS[0]}").status_code
        refused = []
        for node in nodes:
            with node.client as client:
                refused.append(list(client.acl_log()))
    tell(
        f"keys begin with {found}; commands refused: {sum(map(len, refused))}; an analysis request:"
        f" {analysis}"
    )
    assert found == ({"eu"}, {"eu"})
    assert refused == [[], []]
    assert analysis == 200
    assert set(damage.statuses) == {200}
    assert damage.stale == 0
