"""Reads addresses, and refuses what would be misunderstood or ignored.

An option that is silently dropped is worse than none, as with `sslmode=verify-full`. Behind a proxy whose
address was misread, all clients would seem to be one.
"""

import inspect
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import parse_qsl, urlsplit

from django.core.exceptions import ImproperlyConfigured


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


def known_to_redis(*, encrypted: bool) -> set[str]:
    from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
    from redis.connection import URL_QUERY_ARGUMENT_PARSERS

    kinds = (AbstractConnection, Connection, *((SSLConnection,) if encrypted else ()))
    taken = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    # The other parameters want objects, which no address can hold.
    as_text = {"password", "username", "client_name", "protocol", "host", "port", "path"}
    as_text |= {name for name in taken if name.startswith("ssl_")} | set(URL_QUERY_ARGUMENT_PARSERS)
    return (as_text & taken) | {"max_connections"}
