"""Reads addresses, and refuses what would be misunderstood or ignored.

An option that is silently dropped is worse than none, as with `sslmode=verify-full`. Behind a proxy whose
address was misread, all clients would seem to be one.
"""

import re
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import parse_qsl

from django.core.exceptions import ImproperlyConfigured

from core.redis.urls import PLAIN, WITH_SENTINEL, RedisUrlFault, known_options, read_redis_address


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


def read_redis_prefix(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]*", text):
        raise ImproperlyConfigured(
            f"REDIS_PREFIX should be letters and digits, with - _ . and : between them, not {text!r}."
        )
    return text


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


# As it stands in a request, with a dot before it for all names below; an asterisk stands for every name.
HOST_NAME = re.compile(r"\.?[a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f]*:[0-9a-f.:]+\]|[.*]+", re.IGNORECASE)


def read_host(name: str) -> str:
    if not HOST_NAME.fullmatch(name):
        raise ImproperlyConfigured(
            f"ALLOWED_HOSTS has {name!r}, which is not a host name: write api.example.com without https:// "
            "or a port, with commas between several, and IPv6 as [fd00::1]."
        )
    return name


def read_page_origin(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s?#@]+", text):
        raise ImproperlyConfigured(
            f"CSRF_TRUSTED_ORIGINS has {text!r}, which no browser sends: write https://www.example.com, "
            "without a path or a slash at its end."
        )
    return text


# A name has a letter, so that no misspelt address is taken for one.
LISTENED = re.compile(r"(?=.*[a-z])[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.IGNORECASE)


def read_own_host(name: str, variable: str = "HOST") -> str:
    try:
        ip_address(name)
    except ValueError:
        if not LISTENED.fullmatch(name):
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
