"""Which database DATABASE_URL names, as an entry of Django's DATABASES."""

import re
from typing import Any
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured

from .addresses import read_options

POSTGRESQL = ("postgresql", "postgres")

# The address itself says these, or Django sets them.
NOT_AS_OPTIONS = {"dbname", "user", "password", "client_encoding"}
WORDS = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": (
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ),
    "load_balance_hosts": ("disable", "random"),
    "synchronous": ("OFF", "NORMAL", "FULL", "EXTRA"),
}
NUMBERS = {
    "cache_size",
    "connect_timeout",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "mmap_size",
    "tcp_user_timeout",
    "timeout",
}
SQLITE = {"cache_size", "mmap_size", "synchronous", "timeout"}
SHAPE = "DATABASE_URL should look like postgresql://user:password@host:5432/name or sqlite:////folder/file."
HOST = re.compile(r"(\[[\w:.%]+\]|[^\[\]:/]*)(?::(\d{0,5}))?")


def read_database_url(url: str) -> dict[str, Any]:
    """Its `OPTIONS` are what the query says, for libpq as it is."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "sqlite":
        return _sqlite(url)
    if scheme.lower() not in POSTGRESQL or not rest.startswith("//"):
        raise ImproperlyConfigured(SHAPE)
    options = read_options("DATABASE_URL", url, known_to_libpq())
    _check_values(options)
    authority, slash, path = rest[2:].partition("?")[0].partition("/")
    person, _, places = authority.rpartition("@")
    user, _, password = person.partition(":")
    host, port = _hosts(places, options)
    if path.startswith("/") and not host:
        # The folder of a socket and the name, as in postgres:////run/postgresql/name.
        host, _, path = path.rpartition("/")
    if not path and "service" not in options:
        raise ImproperlyConfigured(f"DATABASE_URL names no database. {SHAPE}")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(path),
        "USER": unquote(user),
        "PASSWORD": unquote(password),
        "HOST": unquote(host),
        "PORT": port,
        "OPTIONS": options,
    }


def _hosts(places: str, options: dict[str, str]) -> tuple[str, str]:
    """As libpq takes several: two lists with commas. An empty port in it is 5432."""
    hosts, ports = [], []
    for place in places.split(","):
        found = HOST.fullmatch(place)
        if found is None or not 0 < int(found[2] or 1) < 65_536:
            raise ImproperlyConfigured(
                "DATABASE_URL cannot be read: after the hosts stands a port from 1 to 65535, IPv6 is written "
                "[::1]:5432, and / in a password %2F."
            )
        hosts.append(found[1].strip("[]"))
        ports.append(found[2] or "")
    elsewhere = options.pop("host", ""), options.pop("port", "")
    here = ",".join(hosts).strip(","), ",".join(ports) if any(ports) else ""
    for name, one, other in zip(("host", "port"), here, elsewhere, strict=True):
        if one and other:
            raise ImproperlyConfigured(f"DATABASE_URL names the {name} twice, once as an option.")
    return here[0] or elsewhere[0], here[1] or elsewhere[1]


def _check_values(options: dict[str, str]) -> None:
    # No value is shown, because what was taken for one may be the end of a password.
    for name, value in options.items():
        if name in WORDS and value not in WORDS[name]:
            allowed = ", ".join(WORDS[name])
            raise ImproperlyConfigured(f"{name} in DATABASE_URL should be one of these: {allowed}.")
        if name in NUMBERS and not re.fullmatch(r"-?\d{1,12}", value):
            raise ImproperlyConfigured(f"{name} in DATABASE_URL should be a whole number.")


def _sqlite(url: str) -> dict[str, Any]:
    options = read_options("DATABASE_URL", url, SQLITE)
    _check_values(options)
    path = url.partition("?")[0].partition(":")[2]
    if not path.startswith("///") or len(path) < 4:
        raise ImproperlyConfigured("DATABASE_URL should look like sqlite:////folder/file, with four slashes.")
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": unquote(path[3:]), "OPTIONS": options}


def on_sqlite(database: dict[str, Any], test_file: str) -> dict[str, Any]:
    asked = database["OPTIONS"]
    pragmas = {"journal_mode": "WAL", "synchronous": "NORMAL", "mmap_size": "268435456"}
    pragmas |= {name: value for name, value in asked.items() if name != "timeout"}
    return database | {
        # The threads that ask are few and stay, so their connections may stay too.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": int(asked.get("timeout", 20)),
            "init_command": " ".join(f"PRAGMA {name}={value};" for name, value in pragmas.items()),
        },
        # A file, because a server under test has threads of its own.
        "TEST": {"NAME": test_file},
    }


def on_postgresql(
    database: dict[str, Any], *, connections: int, idle_transaction_s: float, pooler: str, times: float = 1.0
) -> dict[str, Any]:
    by_transaction = pooler == "transaction"
    return database | {
        # Any other CONN_MAX_AGE leaks pooled connections under ASGI.
        "CONN_MAX_AGE": 0,
        # The next statement may run on another connection, which has no such cursor.
        "DISABLE_SERVER_SIDE_CURSORS": by_transaction,
        "OPTIONS": {
            # A host that has vanished is noticed within half a minute instead of hours.
            "connect_timeout": round(5 * times),
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            # PgBouncer refuses connections that bring options.
            **({} if by_transaction else {"options": session_options(idle_transaction_s)}),
            **database["OPTIONS"],
            # Nothing is prepared beforehand: behind a pooler another connection would not know of it.
            "prepare_threshold": None,
            # One for each thread of the API and of pages, and for those that others must not hold up.
            "pool": {
                "min_size": 1,
                "max_size": connections,
                "timeout": 2 * times,
                # The next one tries again at once, instead of after pauses that grow to a minute.
                "reconnect_timeout": 1,
                "reset": leave_standby,
            },
        },
    }


def leave_standby(connection: Any) -> None:
    """Called as a connection comes back to the pool, which drops it if this raises: where the address is one
    that moves, the next may lead to the server that takes changes. The server has told, nobody is asked."""
    if connection.info.parameter_status("in_hot_standby") == "on":
        raise ConnectionAbortedError("The connection led to a standby")


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


def known_to_libpq() -> set[str]:
    """Asks the client library that is installed."""
    from psycopg import pq

    return {option.keyword.decode() for option in pq.Conninfo.get_defaults()} - NOT_AS_OPTIONS
