"""Reads the environment, and refuses what would be misunderstood or ignored.

An option that is silently dropped is worse than none, as with `sslmode=verify-full`. Behind a proxy whose
address was misread, all clients would seem to be one.
"""

import inspect
import os
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

POSTGRESQL = ("postgresql", "postgres")

# The rest of the address says them already, or Django sets them.
NOT_AS_OPTIONS = {"dbname", "user", "password", "port", "client_encoding"}


class Env(environ.Env):  # type: ignore[misc]
    def get_value(self, var: str, cast: Any = None, *args: Any, **options: Any) -> Any:
        try:
            return super().get_value(var, cast, *args, **options)
        except ValueError:
            kind = "a whole number" if cast is int else "a number"
            raise ImproperlyConfigured(f"{var} should be {kind}, not {os.environ[var]!r}.") from None


env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent


def var_dir() -> Path:
    return Path(env.str("VAR_DIR", str(BASE_DIR / "var"))).resolve()


def read_database_url(url: str) -> dict[str, Any]:
    """An entry of Django's DATABASES, whose `OPTIONS` go to libpq as they are."""
    scheme = urlsplit(url).scheme
    if scheme not in (*POSTGRESQL, "sqlite"):
        raise ImproperlyConfigured("DATABASE_URL should look like postgresql://user:password@host:5432/name.")
    options = read_options("DATABASE_URL", url, known_to_libpq() if scheme in POSTGRESQL else set())
    database: dict[str, Any] = environ.Env.db_url_config(url.partition("?")[0])
    return database | {"OPTIONS": options}


def session_options(idle_transaction_s: float) -> str:
    """For libpq. Others wait for what a vanished process holds in a transaction, such as the engine's lease,
    and by itself PostgreSQL notices after two hours that a host is gone. With 0 they wait for ever."""
    options = {
        "idle_in_transaction_session_timeout": f"{idle_transaction_s * 1000:.0f}",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    }
    return " ".join(f"-c {name}={value}" for name, value in options.items())


def read_redis_url(url: str) -> str:
    if not url:
        return url
    scheme = urlsplit(url).scheme
    if scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured(
            "REDIS_URL should look like redis://host:6379/0, or rediss:// for an encrypted connection."
        )
    read_options("REDIS_URL", url, known_to_redis(encrypted=scheme == "rediss"))
    return url


def read_proxies(text: str) -> str:
    """Each IPv4 network also as IPv6, which is how a socket for both kinds of addresses names it."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["*"]:
        return "*"
    found: list[IPv4Network | IPv6Network] = []
    for name in names:
        try:
            network = ip_network(name, strict=False)
        except ValueError:
            raise ImproperlyConfigured(
                f"TRUSTED_PROXIES has {name!r}, which is neither an address nor a network: write 10.0.0.5 or "
                "10.0.0.0/8, with commas between them."
            ) from None
        found.append(network)
        if isinstance(network, IPv4Network):
            found.append(IPv6Network((f"::ffff:{network.network_address}", 96 + network.prefixlen)))
    return ",".join(map(str, found))


def read_options(variable: str, url: str, known: set[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    query = url.partition("?")[2]
    # A reader would end the address there and drop everything that follows.
    for letter, where in (("#", url), ("?", query), ("@", query)):
        if letter in where:
            raise ImproperlyConfigured(
                f"{variable} cannot be read: write # as %23, ? as %3F and @ as %40 in a password or value."
            )
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in options:
            raise ImproperlyConfigured(f"{variable} has the option {name} twice.")
        if name not in known:
            # Only the name is shown, because a value may be a secret.
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else "It would be ignored, so take it out."
            raise ImproperlyConfigured(
                f"{variable} has the option {name!r}, which means nothing there. {hint}"
            )
        options[name] = value
    return options


def known_to_libpq() -> set[str]:
    """Asks the client library that is installed."""
    from psycopg import pq

    return {option.keyword.decode() for option in pq.Conninfo.get_defaults()} - NOT_AS_OPTIONS


def known_to_redis(*, encrypted: bool) -> set[str]:
    from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
    from redis.connection import URL_QUERY_ARGUMENT_PARSERS

    kinds = (AbstractConnection, Connection, *((SSLConnection,) if encrypted else ()))
    taken = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    # The other parameters want objects, which no address can hold.
    as_text = {"password", "username", "client_name", "protocol", "host", "port", "path"}
    as_text |= {name for name in taken if name.startswith("ssl_")} | set(URL_QUERY_ARGUMENT_PARSERS)
    return (as_text & taken) | {"max_connections"}
