"""Why Django refused a page: said on the line of that page, not on one besides it."""

import logging

from .requests import shown, suspicious

REASON = "tickwire.reason"
REFUSALS = "django.security."


class ReasonOfRefusal(logging.Handler):
    """Takes what Django logs of each such page, as an error at times: strangers could cause any number."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._take(record)
        except Exception:  # noqa: BLE001 - a line that cannot be logged must not fail its page
            self.handleError(record)

    def _take(self, record: logging.LogRecord) -> None:
        kind, text = record.name.removeprefix(REFUSALS), record.getMessage()
        if kind == "csrf" and isinstance(record.args, tuple):
            # The second is the path, which the line of the page has already.
            text = str(record.args[0])
        reason = shown(f"{kind}: {text}")
        scope = getattr(getattr(record, "request", None), "scope", None)
        if scope is not None:
            scope[REASON] = reason
        else:
            # Of a session that was tampered with, for example.
            suspicious.tell(kind, "", reason)
