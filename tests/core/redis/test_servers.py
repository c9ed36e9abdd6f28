"""What addresses ask for, of real servers: encryption, a user with few rights, one that turns replica."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, ResponseError

from accounts.limits.redis_window import RedisWindow, limit_fallbacks
from accounts.open_streams.redis_slots import RedisSlots
from accounts.open_streams.stream_slots import MemorySlots, OpenStream, Slot
from core.events.outbox import channel_of
from core.redis.connections import connect_redis, connect_redis_of_threads
from tests.accounts.counters import value_of
from tests.patience import wait_until
from tests.programs.redis_group import FORGETFUL, RedisNode

pytestmark = pytest.mark.served

WRITE = "return redis.call('SET', KEYS[1], ARGV[1])"
# As docs/operate/redis-and-postgresql.md says it.
CAREFUL = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "5")


async def test_encrypted_server_is_checked_by_its_certificate(encrypted: tuple[int, Path]) -> None:
    port, certificate = encrypted
    url = f"rediss://127.0.0.1:{port}/0"
    known = connect_redis(f"{url}?ssl_ca_certs={certificate}&ssl_min_version=TLSv1_3")
    assert await known.get("fact") is None
    await known.aclose()
    with connect_redis_of_threads(f"{url}?ssl_ca_certs={certificate}") as of_threads:
        assert of_threads.ping()
    stranger = connect_redis(url)
    with pytest.raises(RedisConnectionError, match="certificate verify failed"):
        await stranger.get("fact")
    await stranger.aclose()
    plain = connect_redis(f"redis://127.0.0.1:{port}/0", socket_timeout=1)
    with pytest.raises((RedisConnectionError, ssl.SSLError)):
        await plain.get("fact")
    await plain.aclose()


async def test_user_has_what_its_rules_allow(tmp_path: Path) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    with server.running():
        with server.client as client:
            client.execute_command("ACL", "SETUSER", "ada", "on", ">s/cret", "~eu:*", "+@all")
        ada = connect_redis(f"redis://ada:s%2Fcret@127.0.0.1:{server.port}/0")
        await ada.set("eu:fact", "1")
        with pytest.raises(NoPermissionError):
            await ada.set("us:fact", "1")
        await ada.aclose()


async def test_connection_to_a_server_that_became_a_replica_is_given_up(tmp_path: Path) -> None:
    before, after = (RedisNode(tmp_path / name, FORGETFUL) for name in ("before", "after"))
    with before.running(), after.running():
        client = connect_redis(f"redis://127.0.0.1:{before.port}/0")
        script = client.register_script(WRITE)
        assert await script(keys=["fact"], args=["1"])
        connections = connections_of(before)
        with before.client as told:
            told.replicaof("127.0.0.1", after.port)
        wait_until(lambda: before.is_in_step)
        for _ in range(2):
            with pytest.raises(RedisConnectionError, match="Redis has become a replica"):
                await script(keys=["fact"], args=["2"])
        assert connections_of(before).isdisjoint(connections)
        await client.aclose()


def connections_of(server: RedisNode) -> set[str]:
    with server.client as client:
        own = str(client.client_id())
        return {each["id"] for each in client.client_list() if each["flags"] == "N"} - {own}


async def admitted(url: str, limit: int, requests: int) -> int:
    window = RedisWindow(url)
    standings = [await window.ask("account:1", limit, 1) for _ in range(requests)]
    await window.close()
    return sum(standing.admitted for standing in standings)


async def test_limits_are_counted_per_process_while_a_lone_master_refuses_writes(tmp_path: Path) -> None:
    master = RedisNode(tmp_path, (*FORGETFUL, *CAREFUL))
    with master.running():
        url = f"redis://127.0.0.1:{master.port}/0"
        client = connect_redis(url)
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            await client.set("fact", "1")
        await client.aclose()
        before = value_of(limit_fallbacks)
        assert await admitted(url, 3, 6) == 3
    assert value_of(limit_fallbacks) - before == 6


async def opened(url: str) -> bool:
    """Whether an account with one stream gets it."""
    slots = RedisSlots(url, MemorySlots())
    await slots.start()
    slot = Slot(OpenStream("1", "/ws/market", 0.0), 1, lambda code: None, lambda slot: None)
    is_open = await slots.claim(slot, takeover=False) is None
    others = await slots.ask("count")
    await slots.stop()
    return is_open and others == 1


async def test_installations_with_different_prefixes_share_a_redis_and_count_apart(
    shared: str, settings: Any
) -> None:
    for prefix in ("eu", "us"):
        settings.REDIS_PREFIX = prefix
        assert await admitted(shared, 2, 3) == 2
        assert await opened(shared)
        assert channel_of("redis://127.0.0.1/3") == f"{prefix}:control-events:3"
    assert await admitted(shared, 2, 3) == 0
    with Redis.from_url(shared) as client:
        names: Any = client.keys("*")
    assert {name.partition(b":")[0] for name in names} == {b"eu", b"us"}
