"""What may go wrong, as the service says it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx

Json = dict[str, Any]

BEGIN_ANEW = "Nothing was received before: start again."
GO_ON = "What came before is good: go on after it with the cursor of this error."


class ApiError(Exception):
    """A request was refused."""

    def __init__(self, status: int, error: Json, retry_after: float | None = None) -> None:
        super().__init__(error.get("message") or f"The service answered {status}.")
        self.status = status
        self.code: str = error.get("code", "")
        self.field: str | None = error.get("field")
        self.allowed: list[Any] | None = error.get("allowed")
        self.request_id: str | None = error.get("request_id")
        self.retry_after = retry_after
        """Seconds after which the same request would succeed."""


class StreamError(Exception):
    """A stream ended and connecting again would not help."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: str = error["code"]
        self.status: int = error["status"]


class BrokenAnswer(Exception):
    """An answer was not whole. Those who walk or download ask for it again."""


class WalkInterrupted(Exception):
    """A walk over pages stopped before its end: the service was asked for the next page again and again in
    vain. What came is good; with `cursor` another walk goes on after it, and without one it begins anew."""

    def __init__(self, path: str, attempts: int, cursor: str | None, failure: Exception) -> None:
        why = str(failure) or type(failure).__name__
        page, after = ("first", BEGIN_ANEW) if cursor is None else ("next", GO_ON)
        super().__init__(
            f"The {page} page of /api/{path} could not be had in {attempts} attempts: {why} {after}"
        )
        self.cursor = cursor


class ServiceUnreachable(WalkInterrupted, httpx.TransportError):
    """No connection was had for the first page of a walk. It is one of httpx too, as other calls raise it."""

    def __init__(self, path: str, attempts: int, cursor: str | None, failure: Exception) -> None:
        super().__init__(path, attempts, cursor, failure)
        # Those of httpx know what was asked for, where a request came of it at all.
        if isinstance(failure, httpx.RequestError):
            with suppress(RuntimeError):
                self.request = failure.request


class DownloadError(Exception):
    """A file did not arrive as the service has it."""


class MissingExtra(ImportError):
    """What a call needs beyond the client is not installed."""

    def __init__(self, call: str, package: str, extra: str) -> None:
        super().__init__(
            f"{call} needs {package}: pip install {package}, or the client with its extra, tickwire[{extra}]."
        )
