"""Addresses of Redis: what each of them says, and which options it may have. Its client is imported only
where there is an address: commands run without."""

import inspect
import ssl
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PLAIN, WITH_SENTINEL = ("redis", "rediss", "unix"), ("redis+sentinel", "rediss+sentinel")
SENTINEL_PORT = 26379
OF_SENTINEL = {"sentinel_username", "sentinel_password"}

# Each use of Redis has its own patience, and reads answers in the form that it knows.
SET_BY_USES = {"socket_timeout", "socket_connect_timeout", "protocol"}


class RedisUrlFault(ValueError):
    """A sentence for the operator. It quotes no value, because that may be a secret."""


class RedisAddress(NamedTuple):
    options: dict[str, Any]
    """For a connection; without host and port where Sentinel is asked for them."""
    is_encrypted: bool
    is_socket: bool = False
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""
    """The name under which the Sentinels watch it."""
    sentinel_options: dict[str, Any] = {}

    @property
    def database(self) -> int:
        return int(self.options.get("db", 0))


@cache
def read_redis_address(url: str) -> RedisAddress:
    scheme = urlsplit(url).scheme
    if scheme not in (*PLAIN, *WITH_SENTINEL):
        raise RedisUrlFault(
            "should look like redis://host:6379/0, rediss:// for an encrypted connection, or "
            "redis+sentinel://host:26379,host:26379/name/0."
        )
    if scheme in WITH_SENTINEL:
        return _read_sentinel(url)
    is_socket = scheme == "unix"
    if not is_socket:
        _read_database(urlsplit(url).path.strip("/"))
    address = RedisAddress(_read_plain(url), scheme == "rediss", is_socket)
    _try(address)
    return address


def _read_plain(url: str) -> dict[str, Any]:
    from redis.asyncio.connection import parse_url

    try:
        options: dict[str, Any] = dict(parse_url(url))
    except ValueError as error:
        raise RedisUrlFault(f"cannot be read: {error}") from None
    options.pop("connection_class", None)
    if lowest := options.get("ssl_min_version"):
        if lowest not in ("TLSv1_2", "TLSv1_3"):
            raise RedisUrlFault("has an ssl_min_version that is neither TLSv1_2 nor TLSv1_3.")
        options["ssl_min_version"] = ssl.TLSVersion[lowest]
    return options


def _read_sentinel(url: str) -> RedisAddress:
    scheme, _, rest = url.partition("://")
    where, _, query = rest.partition("?")
    hosts, _, path = where.partition("/")
    login, at, hosts = hosts.rpartition("@")
    master, _, database = path.strip("/").partition("/")
    sentinels = tuple(_read_host(host) for host in hosts.split(",") if host)
    if not (sentinels and master):
        raise RedisUrlFault(
            "should name the Sentinels and what they watch: redis+sentinel://host:26379,host:26379/name/0."
        )
    # The reader of plain addresses reads all of it but the hosts.
    plain = scheme.removesuffix("+sentinel")
    options = _read_plain(
        f"{plain}://{login}{at}none/{_read_database(database)}" + (f"?{query}" if query else "")
    )
    options.pop("host", None)
    own = {name.removeprefix("sentinel_"): options.pop(name) for name in OF_SENTINEL & options.keys()}
    encryption = {name: value for name, value in options.items() if name.startswith("ssl_")}
    address = RedisAddress(options, plain == "rediss", False, sentinels, master, own | encryption)
    _try(address)
    return address


def _read_host(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port or SENTINEL_PORT
    except ValueError:
        port = 0
    if not port or not parts.hostname:
        raise RedisUrlFault(
            "names a Sentinel that is not a host and port: write host:26379, with commas between."
        )
    return parts.hostname, port


def _read_database(text: str) -> int:
    if text and not (text.isascii() and text.isdigit()):
        raise RedisUrlFault("should end with the number of a database, as in redis://host:6379/0.")
    return int(text or 0)


def _try(address: RedisAddress) -> None:
    """The library says of some values only as it makes a connection that it cannot use them."""
    from redis.asyncio.connection import (
        AbstractConnection,
        Connection,
        SSLConnection,
        UnixDomainSocketConnection,
    )
    from redis.exceptions import RedisError

    kind: type[AbstractConnection] = Connection
    if address.is_socket or address.is_encrypted:
        kind = UnixDomainSocketConnection if address.is_socket else SSLConnection
    options = {name: value for name, value in address.options.items() if name != "max_connections"}
    try:
        kind(**options)
    except (RedisError, TypeError, ValueError) as error:
        raise RedisUrlFault(f"cannot be used: {error}") from None


def channel_layer(url: str, prefix: str, *, within_s: float) -> dict[str, Any]:
    """For `CHANNEL_LAYERS`: in memory, or over Redis, apart from the installations that share it."""
    if not url:
        return {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection

    address = read_redis_address(url)
    # As everywhere, the library does not say its name.
    host = {
        **address.options,
        "driver_info": None,
        "socket_timeout": within_s,
        "socket_connect_timeout": within_s,
    }
    if address.sentinels:
        every = {"driver_info": None, "socket_timeout": within_s, "ssl": address.is_encrypted}
        own = address.sentinel_options | every
        host |= {"sentinels": address.sentinels, "master_name": address.master, "sentinel_kwargs": own}
        host["ssl"] = address.is_encrypted
    elif address.is_socket or address.is_encrypted:
        host["connection_class"] = UnixDomainSocketConnection if address.is_socket else SSLConnection
    return {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [host], "prefix": f"{prefix}:{address.database}:"},
    }


def known_options(scheme: str) -> set[str]:
    """All others would be ignored."""
    from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
    from redis.connection import URL_QUERY_ARGUMENT_PARSERS

    encrypted = scheme.startswith("rediss")
    kinds = (AbstractConnection, Connection, *((SSLConnection,) if encrypted else ()))
    taken = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    # The other parameters want objects, which no address can hold.
    as_text = {"password", "username", "client_name", "host", "port", "path"}
    as_text |= {name for name in taken if name.startswith("ssl_")} | set(URL_QUERY_ARGUMENT_PARSERS)
    known = (as_text & taken) | {"max_connections"}
    if scheme in WITH_SENTINEL:
        known = (known | OF_SENTINEL) - {"host", "port", "db"}
    return known - SET_BY_USES
