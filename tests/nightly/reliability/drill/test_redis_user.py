"""A whole installation as a user of Redis that may touch only what begins with its prefix, and another
Redis for the market. The rule is the one that docs/operate/redis-and-postgresql.md gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.nightly.reliability.drill.loaded import SYMBOLS, Size, under_load
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation

PAGE = ROOT / "docs/operate/redis-and-postgresql.md"
RULE = re.compile(r"^ACL SETUSER (.*)$", re.MULTILINE)
SIZE = Size(10, 20.0)
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("7", "no command refused, no key of another application touched"),
]


def names(node: RedisNode) -> set[str]:
    with node.client as client:
        found: Any = client.keys("*")
    return {name.decode().partition(":")[0] for name in found}


def refusals(node: RedisNode) -> list[Any]:
    with node.client as client:
        return list(client.acl_log())


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
        with under_load(installation, SIZE, environment=environment) as loaded:
            damage = loaded.measure("nothing", lambda: None)
            server = loaded.ports[0]
            found = names(limits), names(bus)
            analysis = loaded.ask(f"http://127.0.0.1:{server}/api/analysis/{SYMBOLS[0]}").status_code
        refused = [refusals(node) for node in nodes]
    tell(
        f"keys begin with {found}; commands refused: {sum(map(len, refused))}; an analysis request:"
        f" {analysis}"
    )
    assert found == ({"eu"}, {"eu"})
    assert refused == [[], []]
    assert analysis == 200
    assert set(damage.statuses) == {200}
    assert damage.stale == 0
