"""What an address of a database or of Redis asks for is passed on, and refused where nobody would heed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from redis.asyncio import Redis
from uvicorn.middleware.proxy_headers import _TrustedHosts

from config.environment import read_database_url, read_proxies, read_redis_url
from serving.http.connections import AddressGroups
from tests.programs.commands import manage

POSTGRESQL = "postgresql://ada:secret@db.example:5433/market"
PRINT = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS'])"


def test_options_reach_the_client_library_as_they_are() -> None:
    found = read_database_url(f"{POSTGRESQL}?sslmode=verify-full&sslrootcert=/etc/ca.pem&connect_timeout=5")
    assert found["OPTIONS"] == {
        "sslmode": "verify-full",
        "sslrootcert": "/etc/ca.pem",
        "connect_timeout": "5",
    }
    names = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    assert [found[name] for name in names] == ["market", "ada", "secret", "db.example", 5433]


def test_they_are_there_beside_the_pool_in_the_settings(tmp_path: Path) -> None:
    ran = manage(tmp_path / "var", "shell", "-c", PRINT, DATABASE_URL=f"{POSTGRESQL}?sslmode=verify-full")
    assert "'sslmode': 'verify-full'" in ran.stdout, ran.stderr
    assert "'pool'" in ran.stdout


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "sslmod=require",
            "DATABASE_URL has the option 'sslmod', which means nothing there. Did you mean sslmode?",
        ),
        ("conn_max_age=60", "'conn_max_age', which means nothing there"),
        ("password=other", "'password', which means nothing there"),
        ("sslmode=require&sslmode=disable", "DATABASE_URL has the option sslmode twice."),
        ("=x", "'', which means nothing there"),
    ],
)
def test_option_that_nobody_heeds_is_refused(query: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read_database_url(f"{POSTGRESQL}?{query}")
    assert sentence in str(refused.value)
    assert "other" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:pa#ss@db.example/market?sslmode=verify-full",
        "postgresql://ada:secret@db.example/market?sslmode=verify-full#",
        "postgresql://ada:pa?ss@db.example/market?sslmode=verify-full",
        "postgresql://ada:pa?ss@db.example/market",
    ],
)
def test_password_that_would_hide_the_options_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL cannot be read: write # as %23") as refused:
        read_database_url(url)
    assert "ss@" not in str(refused.value)


def test_password_may_hold_any_letter() -> None:
    found = read_database_url("postgresql://ada:%23%3F%40@db.example/market?sslmode=verify-full")
    assert (found["PASSWORD"], found["OPTIONS"]) == ("#?@", {"sslmode": "verify-full"})


def test_sqlite_takes_no_options() -> None:
    assert read_database_url("sqlite:////tmp/x.sqlite3")["NAME"] == "/tmp/x.sqlite3"  # noqa: S108 - a name
    with pytest.raises(ImproperlyConfigured, match="'timeout'"):
        read_database_url("sqlite:////tmp/x.sqlite3?timeout=5")


@pytest.mark.parametrize("url", ["mysql://host/name", "db.example", "http://db"])
def test_no_other_database_is_taken(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL should look like"):
        read_database_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis://127.0.0.1:6379/0",
        "rediss://:secret@cache:6380/1?ssl_cert_reqs=required&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=true",
        "redis://cache?socket_timeout=3&health_check_interval=10&protocol=3",
        "unix:///run/redis.sock?db=2",
    ],
)
def test_options_of_redis_are_passed_on(url: str) -> None:
    assert read_redis_url(url) == url
    if url:
        # Its own library takes each of them.
        Redis.from_url(url).connection_pool.make_connection()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("rediss://cache?ssl_cert_req=required", "Did you mean ssl_cert_reqs?"),
        ("redis://cache?ssl_ca_certs=/etc/ca.pem", "'ssl_ca_certs', which means nothing there"),
        ("redis://cache?retry=3", "'retry', which means nothing there"),
        ("cache:6379", "REDIS_URL should look like"),
        ("redis+sentinel://cache", "REDIS_URL should look like"),
    ],
)
def test_option_that_redis_does_not_know_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read_redis_url(url)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("trusted", "peer", "is_trusted"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("10.0.0.5/8", "10.9.9.9", True),
        ("10.0.0.5/8", "::ffff:10.9.9.9", True),
        (" fd00::1 , 192.0.2.0/24,", "fd00::1", True),
        ("fd00::/64", "fd00::7", True),
        ("fd00::/64", "fd01::7", False),
        ("*", "203.0.113.9", True),
        ("", "127.0.0.1", False),
    ],
)
def test_proxy_is_trusted_by_all_who_ask(trusted: str, peer: str, *, is_trusted: bool) -> None:
    read = read_proxies(trusted)
    assert (peer in _TrustedHosts(read)) is is_trusted
    assert (AddressGroups(read, loopback_counts=True).of(peer) == "") is is_trusted


@pytest.mark.parametrize("trusted", ["nginx", "10.0.0.0/33", "127.0.0.1, *"])
def test_proxy_that_nobody_would_trust_is_refused(trusted: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TRUSTED_PROXIES has"):
        read_proxies(trusted)
