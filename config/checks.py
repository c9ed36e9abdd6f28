"""System checks: settings that would fail together later, and those that production refuses to start with."""

import math
import os
import socket
import zlib
from collections import Counter
from collections.abc import Iterator
from email.utils import parseaddr
from ipaddress import IPv6Network, collapse_addresses, ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import ERROR, CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from core.addresses import host_is_loopback
from core.program import command

from .environment import env
from .installation import MAKE_SECRET
from .logging import LONG_ENOUGH, names_of_short


def check_database(**kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if settings.PRODUCTION and database["ENGINE"].endswith("sqlite3"):
        hint = "Set DATABASE_URL=postgresql://…"
        return [Error("Production needs PostgreSQL.", hint=hint, id="tickwire.E001")]
    pool = database.get("OPTIONS", {}).get("pool", {}).get("max_size")
    if pool is not None and pool < settings.API_THREADS + settings.PAGE_THREADS:
        hint = "Set DATABASE_POOL to API_THREADS and PAGE_THREADS together, or more."
        return [Warning("Threads would have to wait for connections.", hint=hint, id="tickwire.W001")]
    return []


def check_environment(**kwargs: Any) -> list[CheckMessage]:
    return [
        Warning(f"{name} is read by nothing.", hint=f"Is {meant} meant? See settings.md.", id="tickwire.W005")
        for name, meant in env.strangers()
    ]


SHORTEST = 32

# 32 random hexadecimal digits have about 115, a repeated word far fewer.
FEWEST_BITS = 90
MAKE_ONE = f"Make one: {MAKE_SECRET}"
TALKATIVE = ("console", "locmem", "filebased")

# The last one is the placeholder in the files of deploy/.
PLACEHOLDER_HOSTS = ("", "localhost", "example.com")


def check_production(**kwargs: Any) -> list[CheckMessage]:
    return [*_secrets(), *_fallbacks(), *_names(), *_proxies(), *_mail()] if settings.PRODUCTION else []


def refuse_unsafe() -> None:
    """Run the checks for servers that run none themselves."""
    if found := [each for each in check_production() if each.level >= ERROR]:
        raise ImproperlyConfigured(f"PRODUCTION=1 does not start like this: {found[0].msg} {found[0].hint}")


def is_weak(secret: str) -> bool:
    return len(secret) < SHORTEST or bits_of(secret) < FEWEST_BITS


def bits_of(secret: str) -> float:
    """The entropy of its letters, less what repeats itself."""
    counts = Counter(secret)
    bits = -sum(count * math.log2(count / len(secret)) for count in counts.values())
    # zlib makes 8 bytes even of an empty text.
    packed = len(zlib.compress(secret.encode(), 9)) - 8
    return bits * min(1.0, packed / len(secret))


def _secrets() -> Iterator[CheckMessage]:
    for number, name in enumerate(("SECRET_KEY", "KEY_PEPPER"), start=2):
        secret = getattr(settings, name)
        if is_weak(secret):
            text = f"{name} is too short or too regular to be a secret."
            yield Error(text, hint=MAKE_ONE, id=f"tickwire.E00{number}")
    first, second = settings.SECRET_KEY, settings.KEY_PEPPER
    if first in second or second in first:
        hint = (
            "Make an independent KEY_PEPPER, so that a leak of one does not reveal the other, and put"
            " the previous one into KEY_PEPPER_FALLBACKS: keys and second factors continue to work."
        )
        yield Error("KEY_PEPPER follows from SECRET_KEY.", hint=hint, id="tickwire.E004")
    # Those two and their fallbacks have to be longer anyway.
    for name in (each for each in names_of_short() if not each.startswith(("SECRET_KEY", "KEY_PEPPER"))):
        text = (
            f"{name} has a secret of fewer than {LONG_ENOUGH} characters, which a line of the log may show."
        )
        yield Warning(text, hint="Use a longer one, if its issuer allows that.", id="tickwire.W007")


def _fallbacks() -> Iterator[CheckMessage]:
    for name, code in (("SECRET_KEY", "E009"), ("KEY_PEPPER", "E010")):
        before = getattr(settings, f"{name}_FALLBACKS")
        if getattr(settings, name) in before or len(set(before)) < len(before):
            hint = f"Put the previous one there, and the new one into {name}."
            yield Error(
                f"{name}_FALLBACKS has {name} itself, or one twice.", hint=hint, id=f"tickwire.{code}"
            )
    weak = [key for key in settings.SECRET_KEY_FALLBACKS if is_weak(key)]
    if weak:
        text = "SECRET_KEY_FALLBACKS has one that is too short or too regular to be a secret."
        hint = "Remove it, so that it cannot be guessed; people then have to log in again."
        yield Error(text, hint=hint, id="tickwire.E011")
    if any(is_weak(pepper) for pepper in settings.KEY_PEPPER_FALLBACKS):
        # Not refused, because it is the way out of such a pepper.
        text = "KEY_PEPPER_FALLBACKS has one that is too short or too regular to be a secret."
        hint = f"Remove it as soon as `{command('rotate_secrets')}` says that no row needs it."
        yield Warning(text, hint=hint, id="tickwire.W002")


def _names() -> Iterator[CheckMessage]:
    if any(host.strip(".") in ("", "*") for host in settings.ALLOWED_HOSTS):
        hint = "Name the hosts of this service: ALLOWED_HOSTS=api.example.com"
        yield Error("ALLOWED_HOSTS accepts every name.", hint=hint, id="tickwire.E005")
    origins = settings.CSRF_TRUSTED_ORIGINS
    everybodys = [origin for origin in origins if "://*" in origin and origin.count(".") < 2]
    if everybodys or any(not origin.startswith("https://") for origin in origins):
        hint = "Write https:// and a host of yours: an attacker on the network can pose as an http:// page."
        text = "CSRF_TRUSTED_ORIGINS trusts pages without TLS, or all pages."
        yield Error(text, hint=hint, id="tickwire.E006")


# What the networks of the largest providers of proxies do not exceed.
LEAST_BITS = {4: 12, 6: 28}
ALL_IPV4 = IPv6Network("::ffff:0:0/96")
ONE_PROXY = "Name the address of your proxy alone: TRUSTED_PROXIES=10.0.0.5"


def _proxies() -> Iterator[CheckMessage]:
    named = settings.TRUSTED_PROXIES
    networks = [ip_network(name) for name in named.split(",") if name not in ("", "*")]
    # Each of IPv4 is there as one of IPv6 too.
    together = collapse_addresses(network for network in networks if isinstance(network, IPv6Network))
    if named == "*" or any(network.supernet_of(ALL_IPV4) for network in together):
        text = "TRUSTED_PROXIES trusts all addresses, so each client can choose its own."
        yield Error(text, hint=ONE_PROXY, id="tickwire.E008")
    elif wide := [network for network in networks if network.prefixlen < LEAST_BITS[network.version]]:
        text = f"TRUSTED_PROXIES has {wide[0]}, and each client in it can choose its own address."
        yield Warning(text, hint=ONE_PROXY, id="tickwire.W006")


def _mail() -> Iterator[CheckMessage]:
    if settings.EMAIL_BACKEND.split(".")[-2] in TALKATIVE:
        hint = "Set EMAIL_URL=smtp+tls://user:password@host:587, or dummymail:// to send none."
        text = "Mails would be written to the log, with the secret links in them."
        yield Error(text, hint=hint, id="tickwire.E007")
    if not settings.MAILS_ARE_SENT:
        return
    sender = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    if sender.partition("@")[2] in PLACEHOLDER_HOSTS:
        hint = "Set DEFAULT_FROM_EMAIL='Tickwire <no-reply@HOST>', with a host of yours."
        text = f"Mails would come from {sender or 'no address'}, and most servers would refuse them."
        yield Warning(text, hint=hint, id="tickwire.W003")
    is_clear = not (settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL)
    if is_clear and settings.EMAIL_HOST_PASSWORD and not host_is_loopback(settings.EMAIL_HOST):
        hint = "Set EMAIL_URL=smtp+tls://… or smtps://…"
        text = "The password of the mail server would cross the network unencrypted."
        yield Warning(text, hint=hint, id="tickwire.W004")


# Outside these, a wrong unit is likelier than a purpose: candles come late, and a stop hangs or is cut.
GRACES = {"CLOSE_GRACE_MS": (0, 10_000), "DRAIN_S": (0, 300), "STOP_WITHIN_S": (1, 300)}


def check_deployment(**kwargs: Any) -> list[CheckMessage]:
    """Only for `check --deploy`: servers start with these settings, but do not do what is meant."""
    return [*_graces(), *_folders(), *_hosts(), *_ports(), *_mail_host()]


def _graces() -> Iterator[CheckMessage]:
    for name, (least, most) in GRACES.items():
        given = getattr(settings, name)
        if not least <= given <= most:
            text = f"{name} is {given:,g}: " + ("too long." if given > most else "too short.")
            hint = f"Set {name} to between {least} and {most}, or leave it out."
            yield Error(text, hint=hint, id="tickwire.E012")


def _folders() -> Iterator[CheckMessage]:
    """Those that are named, because the service makes its own."""
    named = {
        "VAR_DIR": env.text("VAR_DIR"),
        "STATIC_ROOT": env.text("STATIC_ROOT"),
        "ARCHIVE_DIR": env.text("ARCHIVE_DIR") if settings.ARCHIVE and not settings.ARCHIVE_S3_URL else "",
        "REPLAY_DIR": env.text("REPLAY_DIR"),
        "ONNX_MODEL_DIR": env.text("ONNX_MODEL_DIR"),
    }
    for name in filter(named.get, named):
        folder = Path(getattr(settings, name))
        if not folder.is_dir():
            fault = "is no folder" if folder.exists() else "is not there"
        elif name in ("VAR_DIR", "ARCHIVE_DIR") and not os.access(folder, os.W_OK | os.X_OK):
            fault = "this user may not write to"
        else:
            continue
        hint = f"Mount or make it, for the user of the service: install -d -o tickwire {folder}"
        yield Error(f"{name} names {folder}, which {fault}.", hint=hint, id="tickwire.E013")


def _hosts() -> Iterator[CheckMessage]:
    for name in ("HOST", "METRICS_HOST"):
        host = getattr(settings, name)
        try:
            family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind(address)
        except OSError:
            hint = f"Write 127.0.0.1 for a proxy on this machine, or for all its addresses {name}=0.0.0.0"
            yield Error(
                f"{name} is {host}, which is no address of this machine.", hint=hint, id="tickwire.E016"
            )


def _ports() -> Iterator[CheckMessage]:
    if settings.PORT and settings.METRICS_PORT == settings.PORT:
        text = f"METRICS_PORT is the port of the service itself, {settings.PORT}."
        yield Error(text, hint=_another("METRICS_PORT"), id="tickwire.E014")
    if settings.ENGINE_PORT and settings.ENGINE_PORT in (settings.PORT, settings.METRICS_PORT):
        # Containers have their ports for themselves.
        text = (
            f"ENGINE_PORT is a port of `serve`, too, {settings.ENGINE_PORT}: on one machine one goes without."
        )
        yield Warning(text, hint=_another("ENGINE_PORT"), id="tickwire.W008")


def _another(name: str) -> str:
    return f"Choose another one that is free, such as {name}={getattr(settings, name) % 50_000 + 10_000}."


def _mail_host() -> Iterator[CheckMessage]:
    """A name without a dot, such as a container's, is known to this machine; for others DNS may be away."""
    host = settings.EMAIL_HOST if settings.MAILS_ARE_SENT else ""
    if host and "." not in host and ":" not in host:
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            hint = "Write its full name: EMAIL_URL=smtp+tls://user:password@mail.example.com:587."
            text = f"EMAIL_URL names the mail server {host!r}, which this machine does not know."
            yield Error(text, hint=hint, id="tickwire.E015")
