"""The errors of the client."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]

BEGIN_ANEW = "Nothing had been received: start again."
GO_ON = "All earlier pages were received: continue with the cursor of this error."
UNCONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class TickwireError(Exception):
    """The base of this client's errors, except for wrong arguments (`ValueError`)."""


class ApiError(TickwireError):
    """The service rejected a request."""

    def __init__(self, status: int, error: Json, retry_after: float | None = None) -> None:
        super().__init__(error.get("message") or f"The service answered {status}.")
        self.status = status
        self.code: str = error.get("code", "")
        self.field: str | None = error.get("field")
        self.allowed: list[Any] | None = error.get("allowed")
        self.request_id: str | None = error.get("request_id")
        self.retry_after = retry_after
        """Seconds after which the same request would succeed."""


class StreamError(TickwireError):
    """A stream ended, and reconnecting would not help, or was refused again and again."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: str = error["code"]
        self.status: int = error["status"]


class StateError(TickwireError):
    """A file of places is damaged, or of another kind or version."""


class BrokenAnswer(TickwireError):
    """A response was incomplete or could not be read. Walks and downloads request it again."""


@dataclass(frozen=True)
class Address:
    """The address of the service, and the sentence that helps when nothing is found there."""

    url: str
    advice: str
    timeout: float


class ServiceUnreachable(TickwireError, httpx.TransportError):
    """No response was received: the connection failed, was lost or took too long. The cause is the error of
    httpx. It is also one itself, so that `except httpx.TransportError` catches it."""

    def __init__(self, address: Address, failure: httpx.TransportError) -> None:
        httpx.TransportError.__init__(self, unreachable_words(address, failure))
        # A failure has no request if none could be made.
        with suppress(RuntimeError):
            self.request = failure.request


class WalkInterrupted(TickwireError):
    """A walk stopped before its end, because repeated requests for the next page failed. The pages received
    are complete; a walk with `cursor` continues after them, and without a cursor it has to start again."""

    def __init__(self, path: str, attempts: int, cursor: str | None, failure: Exception) -> None:
        why = str(failure) or type(failure).__name__
        page, after = ("first", BEGIN_ANEW) if cursor is None else ("next", GO_ON)
        super().__init__(
            f"The {page} page of /api/{path} could not be read in {attempts} attempts: {why} {after}"
        )
        self.cursor = cursor


class WalkUnreachable(ServiceUnreachable, WalkInterrupted):
    """No connection could be made for the first page of a walk."""

    def __init__(self, address: Address, cursor: str | None, failure: httpx.TransportError) -> None:
        ServiceUnreachable.__init__(self, address, failure)
        self.cursor = cursor


class DownloadError(TickwireError):
    """A file that was received differs from the one that the service has."""


class MissingExtra(TickwireError, ImportError):
    """A call needs a package that is not installed."""

    def __init__(self, call: str, package: str, extra: str) -> None:
        super().__init__(
            f"{call} needs {package}: run pip install {package}, or install the client with its extra, "
            f"tickwire[{extra}]."
        )


def unreachable_words(address: Address, failure: httpx.TransportError) -> str:
    why = (str(failure) or type(failure).__name__).rstrip(".")
    if isinstance(failure, UNCONNECTED):
        return f"The service could not be reached at {address.url}: {why}. {address.advice}"
    if isinstance(failure, httpx.TimeoutException):
        return (
            f"The service at {address.url} did not answer within {address.timeout:g} seconds. Try again, or "
            "give the client a longer timeout."
        )
    return f"The connection to the service at {address.url} was lost: {why}. Try again."
