"""Log lines: readable in development, JSON in production, each on one line and without secrets."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.http import HttpRequest

from core.plain_json import encode

from .redaction import HIDDEN, is_named_secret, own_secrets, redact

LONGEST = 4_000

# What is longer is not even searched for secrets: so much of a text is never written.
LOOKED_AT = 16 * LONGEST

# Characters that move a terminal's cursor or begin a line, as they are written in Python.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}
CONTROLS_IN_TRACEBACKS = {code: text for code, text in CONTROLS.items() if code not in (9, 10)}

# What every record has; the rest are fields that somebody gave.
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
        # Its end says most.
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
