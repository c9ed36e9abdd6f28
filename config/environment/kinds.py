"""One variable of the environment: what it may hold and how its text is read."""

import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from core.redis.urls import PLAIN, WITH_SENTINEL, RedisUrlFault, known_options, read_redis_address
from transparency.checkpoints import WitnessAddress
from transparency.keys import KeyRefused, KeyType, VerifierKey, name_of_key

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
SWITCH = dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
MOST = 2_147_483_647


class Variable(NamedTuple):
    name: str
    default: Any
    """None where it depends on other variables; `otherwise` says on what."""
    meaning: str
    kind: str
    otherwise: str = ""
    lowest: float = 0
    highest: float = math.inf
    among: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    is_secret: bool = False
    """Its value is never shown, and NAME_FILE may name a file that holds it."""
    is_needed: bool = False
    """Production does not start without it."""

    def value_of(self, given: str) -> Any:
        """Raises ValueError or LookupError for what is not `allowed`, or ImproperlyConfigured with a sentence
        of its own."""
        match self.kind:
            case "whole":
                return int(self._within(int(given)))
            case "number":
                return self._within(float(given))
            case "switch":
                return SWITCH[given.strip().lower()]
            case "words":
                # A file has one on each line, and there a comma is a letter like any other.
                separator = "\n" if "\n" in given else ","
                found = [word for part in given.split(separator) if (word := part.strip())]
                return [self.read(word) for word in found] if self.read else found
        if self.among:
            # The settings have it as it is written in the table, whatever its case.
            return {each.lower(): each for each in self.among}[given.strip().lower()]
        if self.begins and not (given.startswith(self.begins) and _has_host(given)):
            raise ValueError
        return self.read(given) if self.read else given

    def value_of_default(self) -> Any:
        return self.read(self.default) if self.read and self.default else self.default

    def _within(self, value: float) -> float:
        # No comparison with NaN holds.
        if not self.lowest <= value <= self.highest:
            raise ValueError
        if value > MOST:
            raise ImproperlyConfigured(f"{self.name} should be at most {MOST}.")
        return value

    @property
    def allowed(self) -> str:
        match self.kind:
            case "whole" | "number":
                has_end = self.highest < math.inf
                span = f"from {self.lowest:g} to {self.highest}" if has_end else f"of {self.lowest:g} or more"
                return f"a {'whole ' * (self.kind == 'whole')}number {span}"
            case "switch":
                return "1 or 0 (or true, yes, on; false, no, off)"
            case "words":
                return "names with commas between them"
        if self.begins:
            return f"an address that begins with {' or '.join(self.begins)}"
        return " or ".join(self.among) or "text"


text = partial(Variable, kind="text")
secret = partial(Variable, kind="text", is_secret=True)
whole = partial(Variable, kind="whole")
number = partial(Variable, kind="number")
switch = partial(Variable, kind="switch")
words = partial(Variable, kind="words")


def _has_host(address: str) -> bool:
    # Raises ValueError for an invalid port.
    parts = urlsplit(address)
    return bool(parts.hostname and (parts.port is None or parts.port) and not re.search(r"\s", address))


def matching(pattern: str, sentence: str) -> Callable[[str], str]:
    """Takes a text as it is; the braces in the sentence stand for one that is refused."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ImproperlyConfigured(sentence.format(repr(text)))
        return text

    return read


read_redis_prefix = matching(
    r"[A-Za-z0-9][A-Za-z0-9_.:-]*",
    "REDIS_PREFIX should be letters and digits, with - _ . and : between them, not {}.",
)
# As it stands in a request, with a dot before it for all names below; an asterisk stands for every name.
read_host = matching(
    r"(?i)\.?[a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f]*:[0-9a-f.:]+\]|[.*]+",
    "ALLOWED_HOSTS has {}, which is not a host name: write api.example.com without https:// or a port, with "
    "commas between several, and IPv6 as [fd00::1].",
)
read_page_origin = matching(
    r"https?://[^/\s?#@]+",
    "CSRF_TRUSTED_ORIGINS has {}, which no browser sends: write https://www.example.com, without a path or a "
    "slash at its end.",
)


# Reads addresses, and refuses what would be misunderstood or ignored. An option that is silently dropped is
# worse than none, as with `sslmode=verify-full`. Behind a proxy whose address was misread, all clients
# would seem to be one.
def read_redis_url(url: str, variable: str = "REDIS_URL", *, sentinel: bool = True) -> str:
    if not url:
        return url
    scheme = url.partition(":")[0]
    if scheme in (*PLAIN, *WITH_SENTINEL):
        read_options(variable, url, known_options(scheme))
    try:
        address = read_redis_address(url)
    except RedisUrlFault as fault:
        raise ImproperlyConfigured(f"{variable} {fault}") from None
    if address.sentinels and not sentinel:
        raise ImproperlyConfigured(f"{variable} names one server, because Sentinel knows only masters.")
    return url


def read_s3_url(url: str) -> tuple[str, str]:
    """The bucket, and what all names in it begin with."""
    match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9._-]+)*)/?", url)
    if match is None:
        raise ImproperlyConfigured(
            f"ARCHIVE_S3_URL should be s3://bucket or s3://bucket/prefix, not {url!r}; the address of the "
            "store itself goes into ARCHIVE_S3_ENDPOINT."
        )
    bucket, prefix = match.groups()
    return bucket, f"{prefix[1:]}/" if prefix else ""


def read_own_host(name: str, variable: str = "HOST") -> str:
    try:
        ip_address(name)
    except ValueError:
        # A name has a letter, so that a misspelt address is not taken for one.
        if not re.fullmatch(r"(?i)(?=.*[a-z])[a-z0-9_-]+(\.[a-z0-9_-]+)*", name):
            raise ImproperlyConfigured(
                f"{variable} has {name!r}, which is neither an address nor a name: write 127.0.0.1, or "
                "0.0.0.0 for all addresses of this machine, without a port."
            ) from None
    return name


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
                "10.0.0.0/28, with commas between them."
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


# Which database DATABASE_URL names, as an entry of Django's DATABASES.
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
DATABASE_SHAPE = (
    "DATABASE_URL should look like postgresql://user:password@host:5432/name or sqlite:////folder/file."
)
HOST = re.compile(r"(\[[\w:.%]+\]|[^\[\]:/]*)(?::(\d{0,5}))?")


def read_database_url(url: str) -> dict[str, Any]:
    """Its `OPTIONS` are what the query says, for libpq as it is."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "sqlite":
        return _sqlite(url)
    if scheme.lower() not in POSTGRESQL or not rest.startswith("//"):
        raise ImproperlyConfigured(DATABASE_SHAPE)
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
        raise ImproperlyConfigured(f"DATABASE_URL names no database. {DATABASE_SHAPE}")
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
        # The threads that query are few and permanent, so their connections may stay open too.
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
            **({} if by_transaction else {"options": connection_options(idle_transaction_s)}),
            **database["OPTIONS"],
            # No prepared statements: behind a pooler, another connection does not have them.
            "prepare_threshold": None,
            # One for each thread of the API and of pages, and for those that others must not hold up.
            "pool": {
                "min_size": 1,
                "max_size": connections,
                "timeout": 2 * times,
                # The next caller tries again at once, instead of after pauses that grow to a minute.
                "reconnect_timeout": 1,
                "reset": leave_standby,
            },
        },
    }


def leave_standby(connection: Any) -> None:
    """Called as a connection comes back to the pool, which drops it if this raises: where the address is one
    that moves, the next may lead to the server that takes changes. The server has reported its state already,
    so this costs no query."""
    if connection.info.parameter_status("in_hot_standby") == "on":
        raise ConnectionAbortedError("The connection led to a standby")


def connection_options(idle_transaction_s: float) -> str:
    """For libpq. Others wait for what a vanished process holds in a transaction, such as the engine's lease,
    and without these options PostgreSQL takes two hours to notice that a host is gone. With 0 they wait for
    ever."""
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


# Which mail server EMAIL_URL names, as Django's settings.
BACKENDS = {
    "smtp": "smtp",
    "smtp+tls": "smtp",
    "smtps": "smtp",
    "smtp+ssl": "smtp",
    "consolemail": "console",
    "memorymail": "locmem",
    "filemail": "filebased",
    "dummymail": "dummy",
}
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465, "smtp+ssl": 465}
MAIL_SHAPE = (
    "EMAIL_URL should look like smtp+tls://user:password@host:587 or smtps://user:password@host:465, or be "
    "dummymail:// to send none."
)


def read_contact_email(text: str) -> str:
    """The address alone, as it stands in links."""
    try:
        validate_email(text)
    except ValidationError:
        raise ImproperlyConfigured(
            f"CONTACT_EMAIL should be an address such as support@example.com, not {text!r}."
        ) from None
    return text


def read_email_url(url: str) -> dict[str, Any]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(MAIL_SHAPE) from None
    scheme = parts.scheme
    if scheme not in BACKENDS or (scheme in PORTS and not parts.hostname):
        raise ImproperlyConfigured(MAIL_SHAPE)
    read_options("EMAIL_URL", url, set())
    return {
        "EMAIL_BACKEND": f"django.core.mail.backends.{BACKENDS[scheme]}.EmailBackend",
        "EMAIL_HOST": parts.hostname or "",
        "EMAIL_PORT": port or PORTS.get(scheme, 0),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        # The connection begins in the clear and turns to TLS, or it is TLS from its first byte on.
        "EMAIL_USE_TLS": scheme == "smtp+tls",
        "EMAIL_USE_SSL": scheme in ("smtps", "smtp+ssl"),
        "EMAIL_FILE_PATH": unquote(parts.path[1:]) if scheme == "filemail" else None,
    }


# The ledger's names, keys and witnesses.
LONGEST = 200


def read_origin(name: str, variable: str = "LEDGER_ORIGIN") -> str:
    if len(name) > LONGEST:
        raise ImproperlyConfigured(f"{variable} has at most {LONGEST} characters.")
    try:
        return name_of_key(name)
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"{variable}: {refused}") from None


def read_log(key: str, variable: str = "WITNESSED_LOGS") -> VerifierKey:
    try:
        return VerifierKey.read(key)
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"{variable}: {refused}") from None


def read_witness(line: str) -> WitnessAddress:
    text, _, address = line.partition(" ")
    key = read_log(text, "WITNESSES")
    if key.type is not KeyType.COSIGNATURE or not address.startswith(("https://", "http://")):
        raise ImproperlyConfigured(
            "WITNESSES has for each witness its key, a space, and an address that begins with https://."
        )
    return WitnessAddress(key, address.rstrip("/"))
