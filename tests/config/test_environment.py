"""What an address of a database or of Redis asks for is passed on, and refused where nobody would heed it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from uvicorn.middleware.proxy_headers import _TrustedHosts

from config.environment import Environment
from config.environment.kinds import (
    on_postgresql,
    read_database_url,
    read_host,
    read_proxies,
    read_redis_prefix,
    read_redis_url,
)
from core.redis.connections import connect_redis
from core.redis.urls import read_redis_address
from serving.http.connections import AddressGroups
from tests.market.postgresql import own_server
from tests.programs import services
from tests.programs.commands import manage

pytestmark = pytest.mark.served

POSTGRESQL = "postgresql://ada:secret@db.example:5433/market"
PRINT = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS'])"


def test_options_reach_the_client_library_as_they_are() -> None:
    found = read_database_url(f"{POSTGRESQL}?sslmode=verify-full&sslrootcert=/etc/ca.pem&connect_timeout=5")
    options = {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem", "connect_timeout": "5"}
    assert found["OPTIONS"] == options
    assert read_database_url("postgresql://?service=market")["OPTIONS"] == {"service": "market"}
    names = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    assert [found[name] for name in names] == ["market", "ada", "secret", "db.example", "5433"]


def test_they_are_there_beside_the_pool_in_the_settings(tmp_path: Path) -> None:
    ran = manage(tmp_path / "var", "shell", "-c", PRINT, DATABASE_URL=f"{POSTGRESQL}?sslmode=verify-full")
    assert "'sslmode': 'verify-full'" in ran.stdout, ran.stderr
    assert "'pool'" in ran.stdout


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
    found = read_database_url("postgresql://ada:%23%3F%40@db.example/market?sslmode=verify-full")
    assert (found["PASSWORD"], found["OPTIONS"]) == ("#?@", {"sslmode": "verify-full"})


def test_options_of_sqlite_count_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.sqlite3?timeout=7&synchronous=FULL&mmap_size=0&cache_size=-4000"
    assert read_database_url(url)["NAME"] == f"{tmp_path}/x.sqlite3"
    ask = (
        "from django.db import connection as c; c.ensure_connection(); "
        "print([c.connection.execute(f'PRAGMA {name}').fetchone()[0] for name in "
        "('busy_timeout', 'synchronous', 'mmap_size', 'cache_size', 'journal_mode')])"
    )
    ran = manage(tmp_path / "var", "shell", "-v0", "-c", ask, DATABASE_URL=url)
    assert ran.stdout.strip() == "[7000, 2, 0, -4000, 'wal']", ran.stderr


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("h1:5432,h2:5433", "h1,h2", "5432,5433"),
        ("h1,h2", "h1,h2", ""),
        # libpq takes as many ports as hosts; an empty one is 5432.
        ("h1,h2:5433", "h1,h2", ",5433"),
        ("[::1]:5432,[fe80::1%25eth0],10.0.0.5:6432", "::1,fe80::1%eth0,10.0.0.5", "5432,,6432"),
        ("[2001:db8::5]", "2001:db8::5", ""),
        ("%2Frun%2Fpostgresql", "/run/postgresql", ""),
        ("%2Frun%2Fpostgresql:5433", "/run/postgresql", "5433"),
        ("", "", ""),
    ],
)
def test_hosts_are_handed_on_as_libpq_takes_them(address: str, host: str, port: str) -> None:
    found = read_database_url(
        f"postgresql://ada:p%2Fa%2Cs%3As@{address}/market?target_session_attrs=read-write"
    )
    assert (found["HOST"], found["PORT"], found["USER"], found["PASSWORD"]) == (host, port, "ada", "p/a,s:s")
    assert (found["NAME"], found["OPTIONS"]) == ("market", {"target_session_attrs": "read-write"})


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql:///market?host=/run/postgresql&port=5433", "/run/postgresql", "5433"),
        ("postgresql://ada@/market?host=h1,h2&port=5432,5433", "h1,h2", "5432,5433"),
        ("postgres:////run/postgresql/market", "/run/postgresql", ""),
    ],
)
def test_hosts_may_stand_in_the_query_as_in_libpq(url: str, host: str, port: str) -> None:
    found = read_database_url(url)
    assert (found["NAME"], found["HOST"], found["PORT"], found["OPTIONS"]) == ("market", host, port, {})


SQLITE = "sqlite:////srv/x.sqlite3"
ONE_OF = "in DATABASE_URL should be one of these:"
NOTHING = "which means nothing there"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (f"{POSTGRESQL}?sslmod=require", f"the option 'sslmod', {NOTHING}. Did you mean sslmode?"),
        (f"{POSTGRESQL}?conn_max_age=60", f"'conn_max_age', {NOTHING}"),
        (f"{POSTGRESQL}?password=other", f"'password', {NOTHING}"),
        (f"{POSTGRESQL}?sslmode=require&sslmode=disable", "DATABASE_URL has the option sslmode twice."),
        (f"{POSTGRESQL}?=x", f"'', {NOTHING}"),
        (f"{SQLITE}?timeoot=5", f"'timeoot', {NOTHING}. Did you mean timeout?"),
        (f"{SQLITE}?sslmode=require", f"'sslmode', {NOTHING}."),
        (f"{SQLITE}?timeout=long", "timeout in DATABASE_URL should be a whole number."),
        (f"{SQLITE}?synchronous=1;DROP", f"synchronous {ONE_OF} OFF, NORMAL, FULL, EXTRA."),
        ("postgresql://h1/market?host=h2", "DATABASE_URL names the host twice, once as an option."),
        ("postgresql://h1:1/market?port=2", "DATABASE_URL names the port twice, once as an option."),
        ("postgresql://h1", "DATABASE_URL names no database."),
        ("postgresql://h1:0/market", "a port from 1 to 65535"),
        ("postgresql://h1:65536/market", "a port from 1 to 65535"),
        ("postgresql://::1/market", "IPv6 is written [::1]:5432"),
        ("postgresql://ada:pa/ss@h1/market", "/ in a password %2F"),
        ("postgresql://h1/market?sslmode=verfy-full", f"sslmode {ONE_OF} disable,"),
        ("postgresql://h1/market?target_session_attrs=rw", f"target_session_attrs {ONE_OF}"),
        ("postgresql://h1/market?connect_timeout=soon", "connect_timeout in DATABASE_URL should be a whole"),
        ("sqlite://var/x.sqlite3", "with four slashes"),
        ("sqlite:///", "with four slashes"),
        *(
            (url, "DATABASE_URL should look like")
            for url in ("mysql://host/name", "db.example", "http://db", "postgresql:db")
        ),
    ],
)
def test_address_of_a_database_that_would_be_misread_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read_database_url(url)
    assert sentence in str(refused.value)
    assert "other" not in str(refused.value)


def test_of_several_hosts_the_one_that_may_be_written_is_taken(tmp_path: Path) -> None:
    ask = "from django.db import connection as c; print(c.cursor().execute('SHOW port').fetchone()[0])"
    with own_server() as read_only, own_server() as writable:
        ports = [urlsplit(url).port for url in (read_only, writable)]
        standing_by = "ALTER DATABASE postgres SET default_transaction_read_only = on"
        with psycopg.connect(read_only, autocommit=True) as connection:
            connection.execute(standing_by)
        hosts = f"127.0.0.1:{services.free_port()},127.0.0.1:{ports[0]},localhost:{ports[1]}"
        url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write&connect_timeout=60"
        ran = manage(tmp_path / "var", "shell", "-v0", "-c", ask, DATABASE_URL=url)
    assert ran.stdout.strip() == str(ports[1]), ran.stderr


@pytest.mark.parametrize(("pooler", "is_bound"), [("none", True), ("transaction", False)])
def test_migration_leaves_no_bounds_to_others_behind_a_pooler(
    tmp_path: Path, pooler: str, *, is_bound: bool
) -> None:
    with services.postgres(tmp_path) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER DATABASE postgres SET log_statement = 'all'")
        planned = manage(
            tmp_path / "var", "migrate", "--plan", DATABASE_URL=url, DATABASE_POOLER=pooler
        ).stdout
        said = (tmp_path / "postgres.log").read_text()
    assert "pg_catalog" in said
    assert ("SET lock_timeout =" in said, "Behind a pooler" in planned) == (is_bound, not is_bound)


def test_pooler_by_transaction_gets_nothing_that_outlives_one() -> None:
    address = read_database_url(POSTGRESQL)
    direct = on_postgresql(address, connections=5, idle_transaction_s=10.0, pooler="none")
    pooled = on_postgresql(address, connections=5, idle_transaction_s=10.0, pooler="transaction")
    assert "idle_in_transaction_session_timeout=10000" in direct["OPTIONS"]["options"]
    assert "options" not in pooled["OPTIONS"]
    assert (direct["DISABLE_SERVER_SIDE_CURSORS"], pooled["DISABLE_SERVER_SIDE_CURSORS"]) == (False, True)
    assert pooled["OPTIONS"]["prepare_threshold"] is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis://127.0.0.1:6379/0",
        "rediss://:secret@cache:6380/1?ssl_cert_reqs=required&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=true",
        "redis://ada:%40%2F@cache?client_name=web&health_check_interval=10",
        "rediss://cache?ssl_min_version=TLSv1_3",
        "unix:///run/redis.sock?db=2",
        "redis+sentinel://one:26379,two,[::1]:26380/prices/2",
        "rediss+sentinel://ada:secret@one,two/prices?sentinel_username=eve&sentinel_password=x&ssl_ca_certs=/etc/ca.pem",
    ],
)
def test_options_of_redis_are_passed_on(url: str) -> None:
    assert read_redis_url(url) == url
    if url:
        # Its own library takes each of them.
        connect_redis(url).connection_pool.make_connection()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("rediss://cache?ssl_cert_req=required", "Did you mean ssl_cert_reqs?"),
        ("redis://cache?ssl_ca_certs=/etc/ca.pem", "'ssl_ca_certs', which means nothing there"),
        ("redis://cache?retry=3", "'retry', which means nothing there"),
        ("cache:6379", "REDIS_URL should look like"),
        ("redis+sentinel://cache", "REDIS_URL should name the Sentinels and what they watch"),
        ("redis+sentinel:///prices", "REDIS_URL should name the Sentinels and what they watch"),
        ("redis+sentinel://cache:port/prices", "REDIS_URL names a Sentinel that is not a host and port"),
        ("redis+sentinel://cache/prices/main", "REDIS_URL should end with the number of a database"),
        ("redis+sentinel://cache/prices?sentinel_pasword=x", "Did you mean sentinel_password?"),
        ("redis+sentinel://cache/prices?db=3", "'db', which means nothing there"),
        ("redis://cache?sentinel_password=x", "'sentinel_password', which means nothing there"),
        ("redis://cache/main", "REDIS_URL should end with the number of a database"),
        ("redis://cache?socket_timeout=3", "'socket_timeout', which means nothing there"),
        ("redis://cache?protocol=3", "'protocol', which means nothing there"),
        ("redis://cache?health_check_interval=often", "REDIS_URL cannot be read"),
        ("rediss://cache?ssl_cert_reqs=maybe", "REDIS_URL cannot be used"),
        ("rediss://cache?ssl_min_version=1.2", "ssl_min_version that is neither TLSv1_2 nor TLSv1_3"),
    ],
)
def test_option_that_redis_does_not_know_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read_redis_url(url)
    assert sentence in str(refused.value)


def test_address_with_sentinels_says_who_is_asked_and_how_and_a_prefix_is_no_pattern() -> None:
    url = (
        "rediss+sentinel://ada:s%40crt@one,[::1]:26380/prices/2?sentinel_password=x&ssl_ca_certs=/etc/ca.pem"
    )
    address = read_redis_address(url)
    assert address.sentinels == (("one", 26379), ("::1", 26380))
    assert (address.master, address.database) == ("prices", 2)
    certificate = {"ssl_ca_certs": "/etc/ca.pem"}
    assert address.options == {"username": "ada", "password": "s@crt", "db": 2} | certificate
    assert address.sentinel_options == {"password": "x"} | certificate
    with pytest.raises(ImproperlyConfigured, match="BUS_REPLICA_URL names one server"):
        read_redis_url("redis+sentinel://one/prices", "BUS_REPLICA_URL", sentinel=False)
    for prefix in ("tickwire", "eu-1.prices:live"):
        assert read_redis_prefix(prefix) == prefix
    for prefix in ("", "*", "a b", ":a", "{a}", "a?"):
        with pytest.raises(ImproperlyConfigured, match="REDIS_PREFIX should be letters and digits"):
            read_redis_prefix(prefix)


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


def test_allowed_host_is_a_name_that_a_request_can_have() -> None:
    for name in ("api.example.com", ".example.com", "LOCALHOST", "10.0.0.5", "[fd00::1]", "*"):
        assert read_host(name) == name
    for name in (
        *("https://api.example.com", "api.example.com:443", "a.example.com b.example.com", "*.example.com"),
        *("api.example.com/", "api.example.com.", "fd00::1"),
    ):
        with pytest.raises(ImproperlyConfigured, match="ALLOWED_HOSTS has .* not a host name"):
            Environment({"ALLOWED_HOSTS": f"www.example.com,{name}"}).words("ALLOWED_HOSTS")
