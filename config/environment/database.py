"""Which database DATABASE_URL names, as an entry of Django's DATABASES."""

from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from .addresses import read_options

POSTGRESQL = ("postgresql", "postgres")

# The rest of the address says them already, or Django sets them.
NOT_AS_OPTIONS = {"dbname", "user", "password", "port", "client_encoding"}
SHAPE = "DATABASE_URL should look like postgresql://user:password@host:5432/name."


def read_database_url(url: str) -> dict[str, Any]:
    """Its `OPTIONS` go to libpq as they are."""
    scheme = url.partition(":")[0].lower()
    if scheme == "sqlite":
        return _sqlite(url)
    if scheme not in POSTGRESQL:
        raise ImproperlyConfigured(SHAPE)
    options = read_options("DATABASE_URL", url, known_to_libpq())
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(SHAPE) from None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": port or "",
        "OPTIONS": options,
    }


def _sqlite(url: str) -> dict[str, Any]:
    read_options("DATABASE_URL", url, set())
    path = url.partition("?")[0].removeprefix("sqlite://").removeprefix("/")
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": unquote(path) or ":memory:", "OPTIONS": {}}


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
