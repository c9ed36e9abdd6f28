"""Takes secrets out of texts. A secret is recognised by its form or by the name before it, and those of this
installation by their value."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from django.conf import settings

from .environment import env

HIDDEN = "***"

# Shorter ones are words that stand in any line.
SHORTEST_OWN = 12
NAMES = (
    r"x-api-key|api[-_]?key|x-ingest-key|ingest[-_]?key|authorization|token|access_token|password\d?|passwd"
    r"|secret|sessionid|csrftoken|cookie|credential"
)
SLASH = "(?:/|%2f)"
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Our keys: the public prefix stays, by which staff find them.
    (re.compile(r"(tw_[a-z]{1,12}_[0-9A-Za-z]{8})[0-9A-Za-z]{4,}"), rf"\1{HIDDEN}"),
    (re.compile(r"\bpt_[0-9]{1,20}-[0-9]{1,20}\.[\w-]+"), f"pt_{HIDDEN}"),
    # The password in an address of a database or a proxy.
    (re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=:-]{4,}"), rf"\1 {HIDDEN}"),
    # Links that let somebody in.
    (
        re.compile(rf"(?i)({SLASH}(?:demo-login|confirm-email|reset{SLASH}key){SLASH})[^\s/?'\"]+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"(?i)\b({NAMES})(=|%3d)[^\s&'\"<>]+"), rf"\1\2{HIDDEN}"),
    (re.compile(rf"(?i)\b({NAMES})(\\?['\"]?: ?b?\\?['\"]?)[^\s&'\"<>,}}\\]+"), rf"\1\2{HIDDEN}"),
)


def redact(text: str, own: Iterable[str]) -> str:
    """`own` are the secrets of this installation, whatever they look like."""
    for secret in own:
        text = text.replace(secret, HIDDEN)
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text


def is_named_secret(name: str) -> bool:
    return re.fullmatch(NAMES, name, re.IGNORECASE) is not None


def own_secrets() -> list[str]:
    """The longest first, because it may contain another."""
    found = {each for each in _own() if len(each) >= SHORTEST_OWN}
    return sorted(found, key=len, reverse=True)


def _own() -> Iterator[str]:
    yield from (settings.SECRET_KEY, settings.KEY_PEPPER, settings.METRICS_TOKEN, settings.OANDA_TOKEN)
    yield from (*settings.SECRET_KEY_FALLBACKS, *settings.KEY_PEPPER_FALLBACKS)
    yield str(settings.DATABASES["default"].get("PASSWORD") or "")
    yield settings.EMAIL_HOST_PASSWORD or ""
    yield from (endpoint["key"] for endpoint in settings.LANGUAGE_ENDPOINTS)
    for given in env.secrets():
        yield given
        # As it stands in an address, and as libraries show it.
        password = password_in(given)
        yield from (password, unquote(password))


def password_in(address: str) -> str:
    """Also of an address that `urlsplit` refuses, such as one with several hosts of IPv6."""
    person, at, _ = address.partition("://")[2].partition("/")[0].rpartition("@")
    return person.partition(":")[2] if at else ""
