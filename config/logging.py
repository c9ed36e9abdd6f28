"""Log lines: readable in development, JSON in production, each on one line and without secrets.

A secret is recognised by its form or by the name before it, and those of this installation by their value.
"""

import logging
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import structlog
from django.conf import settings
from structlog.typing import EventDict

LONGEST = 4_000

# Characters that move a terminal's cursor or begin a line, as they are written in Python.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}
CONTROLS_IN_TRACEBACKS = {code: text for code, text in CONTROLS.items() if code not in (9, 10)}


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    """Takes the secrets out of a line as the last step, wherever the line comes from."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._own_secrets)

    @cached_property
    def _own_secrets(self) -> list[str]:
        """The longest first, because it may contain another."""
        # Not before the first line: the settings are still being read when logging is set up.
        languages = [endpoint["key"] for endpoint in settings.LANGUAGE_ENDPOINTS]
        database = str(settings.DATABASES["default"].get("PASSWORD") or "")
        named = (settings.SECRET_KEY, settings.KEY_PEPPER, settings.METRICS_TOKEN, settings.OANDA_TOKEN)
        before = (*settings.SECRET_KEY_FALLBACKS, *settings.KEY_PEPPER_FALLBACKS)
        found = {*named, *before, database, settings.EMAIL_HOST_PASSWORD or "", *languages}
        return sorted((each for each in found if len(each) >= SHORTEST_OWN), key=len, reverse=True)


class StrangersLeaveNoTraceback(logging.Filter):
    """A mistake in what a stranger sent, such as another Host, is logged in one line: it is no fault of the
    code."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True


def on_one_line(logger: Any, method: str, event: EventDict) -> EventDict:
    for name, value in event.items():
        if name == "exception":
            event[name] = str(value).translate(CONTROLS_IN_TRACEBACKS).replace("\n", "\n    ")
        elif value is not None and not isinstance(value, int | float):
            event[name] = cut(str(value)).translate(CONTROLS)
    return event


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST} more)"


def line_formatter(json: bool) -> logging.Formatter:
    renderer = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    return LineFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            on_one_line,
            renderer,
        ],
    )


HIDDEN = "***"

# Shorter ones are words that stand in any line.
SHORTEST_OWN = 12
NAMES = (
    r"x-api-key|api[-_]?key|x-ingest-key|ingest[-_]?key|authorization|token|access_token|password\d?|passwd"
    r"|secret|sessionid|csrftoken|cookie|credential"
)
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Our keys: the public prefix stays, by which staff find them.
    (re.compile(r"(tw_[a-z]{1,12}_[0-9A-Za-z]{8})[0-9A-Za-z]{4,}"), rf"\1{HIDDEN}"),
    (re.compile(r"\bpt_[0-9]{1,20}-[0-9]{1,20}\.[\w-]+"), f"pt_{HIDDEN}"),
    # The password in an address of a database or a proxy.
    (re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=:-]{4,}"), rf"\1 {HIDDEN}"),
    # Links that let somebody in.
    (re.compile(r"(/(?:demo-login|confirm-email|reset/key)/)[^\s/?'\"]+"), rf"\1{HIDDEN}"),
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
