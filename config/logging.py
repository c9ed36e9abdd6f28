"""Log lines: readable in development, one JSON object each in production; no secrets, and on one line."""

from __future__ import annotations

import logging
from typing import Any

import structlog
from django.conf import settings

from .redaction import Redactor

LONGEST = 4_000
# Characters that move a terminal's cursor or begin a line, as they are written in Python.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}
CONTROLS_IN_TRACEBACKS = {code: text for code, text in CONTROLS.items() if code not in (9, 10)}

Event = dict[str, Any]


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    """The last thing that happens to a line, wherever it comes from, is that secrets are taken out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._redact: Redactor | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._redact is None:
            self._redact = Redactor(own_secrets())
        return self._redact(super().format(record))


def own_secrets() -> list[str]:
    # Not before the first line: the settings are still being read when logging is set up.
    languages = [endpoint["key"] for endpoint in settings.LANGUAGE_ENDPOINTS]
    database = str(settings.DATABASES["default"].get("PASSWORD") or "")
    named = (settings.SECRET_KEY, settings.KEY_PEPPER, settings.METRICS_TOKEN, settings.OANDA_TOKEN)
    return [*named, database, settings.EMAIL_HOST_PASSWORD or "", *languages]


class StrangersLeaveNoTraceback(logging.Filter):
    """What a stranger sent wrongly, such as another Host, is a line and no fault of the code."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True


def on_one_line(logger: Any, method: str, event: Event) -> Event:
    for name, value in event.items():
        if name == "exception":
            event[name] = str(value).translate(CONTROLS_IN_TRACEBACKS).replace("\n", "\n    ")
        elif isinstance(value, str):
            event[name] = cut(value).translate(CONTROLS)
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
