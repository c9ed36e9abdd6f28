"""What addresses ask for, of real servers: encryption, a user with few rights, one that turns replica."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError

from core.redis.connections import connect_redis, connect_redis_of_threads
from tests.certificates import make_certificate
from tests.patience import wait_until
from tests.programs.debian import require_debian
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.programs.services import free_port

pytestmark = pytest.mark.served

WRITE = "return redis.call('SET', KEYS[1], ARGV[1])"


async def test_encrypted_server_is_checked_by_its_certificate(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    for path in (key, certificate, tmp_path):
        path.chmod(0o755)
    # The one out of a wheel was built without encryption.
    binary = require_debian("redis-server")
    server = RedisNode(tmp_path / "redis", FORGETFUL, binary)
    server.start()
    try:
        with server.client as client:
            port = free_port()
            for name, value in (
                ("tls-cert-file", certificate),
                ("tls-key-file", key),
                ("tls-auth-clients", "no"),
                ("tls-port", port),
            ):
                client.config_set(name, str(value))
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
    finally:
        server.kill()


async def test_user_has_what_its_rules_allow(tmp_path: Path) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    server.start()
    try:
        with server.client as client:
            client.execute_command("ACL", "SETUSER", "ada", "on", ">s/cret", "~eu:*", "+@all")
        ada = connect_redis(f"redis://ada:s%2Fcret@127.0.0.1:{server.port}/0")
        await ada.set("eu:fact", "1")
        with pytest.raises(NoPermissionError):
            await ada.set("us:fact", "1")
        await ada.aclose()
    finally:
        server.kill()


async def test_connection_to_a_server_that_became_a_replica_is_given_up(tmp_path: Path) -> None:
    """Whoever moved the address elsewhere need not end our connections to the old place."""
    before, after = (RedisNode(tmp_path / name, FORGETFUL) for name in ("before", "after"))
    try:
        before.start()
        after.start()
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
    finally:
        before.kill()
        after.kill()


def connections_of(server: RedisNode) -> set[str]:
    with server.client as client:
        own = str(client.client_id())
        return {each["id"] for each in client.client_list() if each["flags"] == "N"} - {own}
