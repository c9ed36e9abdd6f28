"""The user of Redis that docs/operate/redis-and-postgresql.md makes: what it may not ask, on old servers
and new. The whole service works as that user in tests/nightly/reliability/drill/test_variants.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from tests.patience import PATIENCE_S
from tests.programs.debian import require_debian
from tests.programs.redis_group import FORGETFUL, RedisNode

pytestmark = pytest.mark.served

PAGE = Path("docs/operate/redis-and-postgresql.md")
(RULE,) = re.findall(r"^ACL SETUSER (.*)$", PAGE.read_text(), re.MULTILINE)
NEIGHBOUR = "us:secret"
ANYBODYS = (
    *("SCAN 0", "KEYS *", "RANDOMKEY", "DBSIZE", "SCRIPT FLUSH", "SCRIPT KILL"),
    *("FLUSHDB", "FLUSHALL", "SWAPDB 0 1"),
)
CHANNELS = ("PUBSUB CHANNELS *", "PUBSUB NUMSUB us:news", "PUBSUB NUMPAT")
SERVER = (
    *("CONFIG GET *", "ACL LIST", "CLIENT LIST", "CLIENT KILL TYPE normal", "MONITOR", "INFO"),
    "SLOWLOG GET",
)
OF_NEIGHBOUR = (
    f"GET {NEIGHBOUR}",
    f"DEL {NEIGHBOUR}",
    f"COPY {NEIGHBOUR} eu:copy",
    f"RENAME eu:own {NEIGHBOUR}",
    "PUBLISH us:news x",
)
FUNCTIONS = ("FUNCTION LIST", "FUNCTION FLUSH", "FUNCTION DUMP", "FUNCTION KILL", "FCALL any 0")


@pytest.fixture(scope="module", params=["of the wheel", "of Debian"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisNode]:
    binary = require_debian("redis-server") if request.param == "of Debian" else ""
    node = RedisNode(tmp_path_factory.mktemp("redis"), FORGETFUL, binary)
    with node.running():
        with node.client as operator:
            operator.execute_command("ACL", "SETUSER", *RULE.split())
            operator.set(NEIGHBOUR, "theirs")
        yield node


@pytest.fixture
def user(node: RedisNode) -> Iterator[Any]:
    with Redis(
        port=node.port, username="tickwire", password="change-me", socket_timeout=PATIENCE_S
    ) as client:  # noqa: S106
        client.set("eu:own", "ours")
        yield client


@pytest.mark.parametrize("typed", [*ANYBODYS, *CHANNELS, *SERVER, *OF_NEIGHBOUR])
def test_it_asks_nothing_about_neighbours(user: Any, typed: str) -> None:
    with pytest.raises(NoPermissionError):
        user.execute_command(*typed.split())


@pytest.mark.parametrize("typed", FUNCTIONS)
def test_it_has_no_functions(user: Any, typed: str) -> None:
    # A server before 7 knows no such command.
    with pytest.raises(ResponseError, match="permission|unknown command"):
        user.execute_command(*typed.split())


@pytest.mark.parametrize("typed", [*ANYBODYS[:4], *OF_NEIGHBOUR])
def test_nor_do_its_scripts(user: Any, typed: str) -> None:
    words = typed.split()
    with pytest.raises(ResponseError, match="permissions|can't"):
        user.eval("return redis.call(unpack(ARGV))", 0, *words)


def test_nothing_of_the_neighbour_changed(node: RedisNode, user: Any) -> None:
    assert user.register_script("return redis.call('GET', KEYS[1])")(keys=["eu:own"]) == b"ours"
    with node.client as operator:
        assert operator.get(NEIGHBOUR) == b"theirs"
