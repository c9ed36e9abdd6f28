"""Log lines: readable in development, JSON in production, each on one line and without secrets, which are cut
out here."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote

from django.conf import settings
from django.http import HttpRequest

from core.plain_json import encode

from .environment import env

# Takes secrets out of texts. A secret is recognised by its form or by the name before it, and those of this
# installation by their value.
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
    # Links that log a person in.
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
    # Most texts contain no name, and searching for all names takes longer than everything else.
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


LONGEST = 4_000

# Longer texts are cut before they are searched for secrets.
LOOKED_AT = 16 * LONGEST

# Characters that move a terminal's cursor or begin a line, as they are written in Python.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}
CONTROLS_IN_TRACEBACKS = {code: text for code, text in CONTROLS.items() if code not in (9, 10)}

# What every record has; the rest are fields that the caller added.
GIVEN_BY_PYTHON = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
EVENT_WIDTH, LEVEL_WIDTH = 30, 8


class LineFormatter(logging.Formatter, ABC):
    """Secrets are taken out of each value before it is encoded, so that no quoting hides them."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        event, fields = self._event(record), dict(self._fields(record))
        traceback = self._traceback(record)
        return self._line(at.replace("+00:00", "Z"), record, event, fields, traceback)

    @abstractmethod
    def _line(
        self, at: str, record: logging.LogRecord, event: str, fields: dict[str, Any], traceback: str
    ) -> str: ...

    @cached_property
    def _own(self) -> list[str]:
        # Not before the first line: the settings are still being read when logging is set up.
        return own_secrets()

    def _clean(self, text: str) -> str:
        # Half a character, as a file name may hold it, cannot be encoded.
        whole = text[:LOOKED_AT].encode("utf-8", "backslashreplace").decode()
        return cut(redact(whole, self._own), len(text)).translate(CONTROLS)

    def _event(self, record: logging.LogRecord) -> str:
        try:
            return self._clean(record.getMessage())
        except Exception:  # noqa: BLE001 - otherwise Python prints the arguments as they are, secrets included
            return self._clean(f"{record.msg!r} with {record.args!r}")

    def _fields(self, record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
        for name, value in record.__dict__.items():
            if name in GIVEN_BY_PYTHON:
                continue
            if isinstance(value, HttpRequest):
                # Its text has the query in it.
                yield "method", self._clean(str(value.method))
                yield "path", self._clean(value.path)
            elif is_named_secret(name):
                yield name, HIDDEN
            else:
                yield name, value if isinstance(value, bool | int | float | None) else self._clean(str(value))

    def _traceback(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[0] is None:
            return ""
        # The end of a traceback says most.
        text = redact(self.formatException(record.exc_info), self._own)[-LOOKED_AT:]
        return text.encode("utf-8", "backslashreplace").decode().translate(CONTROLS_IN_TRACEBACKS)


class JsonLines(LineFormatter):
    def _line(
        self, at: str, record: logging.LogRecord, event: str, fields: dict[str, Any], traceback: str
    ) -> str:
        given = {"timestamp": at, "level": record.levelname.lower(), "logger": record.name, "event": event}
        more = {"exception": traceback} if traceback else {}
        return encode(given | fields | more).decode()


class ReadableLines(LineFormatter):
    def _line(
        self, at: str, record: logging.LogRecord, event: str, fields: dict[str, Any], traceback: str
    ) -> str:
        shown = " ".join(f"{name}={value}" for name, value in fields.items())
        level = record.levelname.lower()
        line = f"{at} [{level:<{LEVEL_WIDTH}}] {event:<{EVENT_WIDTH}} [{record.name}] {shown}".rstrip()
        return "\n    ".join((line, *traceback.splitlines()))


def cut(text: str, length: int) -> str:
    """`length` is that of the text as it was before."""
    return text if max(len(text), length) <= LONGEST else f"{text[:LONGEST]}… ({length - LONGEST} more)"


def line_formatter(json: bool) -> logging.Formatter:
    return JsonLines() if json else ReadableLines()
