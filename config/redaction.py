"""Takes secrets out of texts. A secret is recognised by its form or by the name before it, and those of this
installation by their value."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, unquote

from django.conf import settings

from .environment import env

HIDDEN = "***"

# What is shorter is hidden by its form and its name alone: by its value, "dev" would vanish from any line.
SHORTEST_OWN = 6
# From here on a secret is hidden inside a longer word too; before, "signal" would vanish from "signals".
LONG_ENOUGH = 12

# Whatever stands before it: new_password and X-Client-Secret end in one of these.
NAMES = (
    r"(?:(?:api|ingest|access|private|signing|encryption)[-_]?key|token|passw(?:or)?d|passphrase|pwd|secret"
    r"|pepper|credentials?|authorization|cookie|sessionid)\d?(?:[-_][\w-]{0,40}+)?+"
)
SLASH = "(?:/|%2f)"
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Our keys: the public prefix stays, by which staff find them.
    (re.compile(r"(tw_[a-z]{1,12}_[0-9A-Za-z]{8})[0-9A-Za-z]{4,}"), rf"\1{HIDDEN}"),
    # Also after a word and an underscore.
    (re.compile(r"(?<![^\W_])pt_[0-9]{1,20}-[0-9]{1,20}\.[\w-]+"), f"pt_{HIDDEN}"),
    # The password in an address of a database or a proxy.
    (re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=:-]{4,}"), rf"\1 {HIDDEN}"),
    # Links that let somebody in.
    (
        re.compile(rf"(?i)({SLASH}(?:demo-login|confirm-email|reset{SLASH}key){SLASH})[^\s/?'\"]+"),
        rf"\1{HIDDEN}",
    ),
)
# What follows a name, up to the quote that ends it or to the end of the word.
NAMED = re.compile(
    rf"(?i)({NAMES}\\?['\"]? ?(?:[:=]|%3a|%3d) ?(?:b?\\?(['\"]))?)"
    r"(?(2)(?:(?!\2).)+|(?:(?:bearer|basic|digest|token) )?[^\s&'\"<>]+)"
)
SECRET_NAME = re.compile(rf"(?i){NAMES}$")


def redact(text: str, own: Iterable[str]) -> str:
    """`own` are the secrets of this installation, whatever they look like."""
    for secret in own:
        if secret in text:
            text = _without(secret, text)
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    # Most texts name nothing, and searching for all names takes longer than all the rest.
    if "=" in text or ":" in text or "%3" in text:
        text = NAMED.sub(rf"\1{HIDDEN}", text)
    return text


def _without(secret: str, text: str) -> str:
    if len(secret) >= LONG_ENOUGH:
        return text.replace(secret, HIDDEN)
    return re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", HIDDEN, text)


def is_named_secret(name: str) -> bool:
    return SECRET_NAME.search(name) is not None


def own_secrets() -> list[str]:
    """The longest first, because it may contain another."""
    made = {settings.SECRET_KEY, settings.KEY_PEPPER}
    made |= {*settings.SECRET_KEY_FALLBACKS, *settings.KEY_PEPPER_FALLBACKS}
    found = made | {each for _, each in given_secrets()}
    return sorted((each for each in found if len(each) >= SHORTEST_OWN), key=len, reverse=True)


def names_of_short() -> list[str]:
    """Variables whose secret a line of the log may show."""
    short = {name for name, each in given_secrets() if len(each) < LONG_ENOUGH and "://" not in each}
    return sorted(short)


def given_secrets() -> Iterator[tuple[str, str]]:
    """Those of the environment, with the names of their variables."""
    for name, given in env.secrets().items():
        yield name, given
        for password in passwords_in(given):
            # As it stands in an address, and as libraries show it.
            yield from ((name, password), (name, unquote(password)))


def passwords_in(address: str) -> Iterator[str]:
    """Also of an address that `urlsplit` refuses, such as one with several hosts of IPv6."""
    rest = address.partition("://")[2]
    person, _, _ = rest.partition("/")[0].rpartition("@")
    if password := person.partition(":")[2]:
        yield password
    yield from (value for name, value in parse_qsl(rest.partition("?")[2]) if is_named_secret(name))
