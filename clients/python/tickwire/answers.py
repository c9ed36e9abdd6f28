"""What an answer of REST means: a value, an error, or a reason to ask again. It does no I/O."""

from __future__ import annotations

from typing import NoReturn

import httpx

from .errors import Address, ApiError, BrokenAnswer, Json, ServiceUnreachable

Value = str | int | None

LONGEST_WAIT_S = 60.0
LONGEST_BACKOFF_S = 15.0
# What stands in front of a service says while that starts again.
UNREACHED = (502, 503, 504)
FAILURES = (ApiError, BrokenAnswer, httpx.TransportError, httpx.DecodingError)
"""What may be over when the same is asked again."""
BROKEN_OFF = (
    BrokenAnswer,
    httpx.DecodingError,
    httpx.ReadError,
    httpx.ReadTimeout,
    httpx.RemoteProtocolError,
    httpx.WriteError,
)
"""The service was reached, and the connection to it lost."""


def given(parameters: dict[str, Value]) -> dict[str, str | int]:
    return {name: value for name, value in parameters.items() if value is not None}


def read(answer: httpx.Response) -> Json:
    require_success(answer)
    try:
        body: Json = answer.json()
    except ValueError as fault:
        raise BrokenAnswer(f"{answer.url} did not answer with JSON: is a Tickwire service there?") from fault
    return body


def require_success(answer: httpx.Response) -> None:
    """Its body has been read."""
    if answer.is_success:
        return
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = None
    if not isinstance(error, dict):
        # Not from the service but from something in front of it.
        error = {}
    waits = answer.headers.get("Retry-After", "")
    raise ApiError(answer.status_code, error, float(waits) if waits.isdigit() else None)


def wait_before_again(failure: Exception, attempt: int) -> float | None:
    """Seconds to wait, or None where asking again would not help."""
    if isinstance(failure, ApiError):
        is_passing = failure.code in ("rate_limit_exceeded", "overloaded", "quote_unavailable")
        wait_s = failure.retry_after
        return wait_s if is_passing and wait_s is not None and wait_s <= LONGEST_WAIT_S else None
    return 0.25 * 2**attempt if isinstance(failure, httpx.TransportError) else None


def wait_before_repeating(address: Address, failure: Exception, attempt: int, retries: int) -> float:
    """The same of one call; or what its caller is to be told."""
    wait_s = wait_before_again(failure, attempt)
    if wait_s is None or attempt >= retries:
        raise_as_ours(address, failure)
    return wait_s


def raise_as_ours(address: Address, failure: Exception) -> NoReturn:
    if isinstance(failure, httpx.TransportError):
        raise ServiceUnreachable(address, failure) from failure
    raise failure


def wait_before_going_on(failure: Exception, attempt: int) -> float | None:
    """The same of something long, which is also worth going on with once what stands in front of the service
    reaches it again."""
    backoff_s = min(LONGEST_BACKOFF_S, 0.25 * 2.0**attempt)
    if not isinstance(failure, ApiError):
        return backoff_s
    if failure.retry_after is None and failure.status in UNREACHED and failure.code in ("", "overloaded"):
        return backoff_s
    wait_s = failure.retry_after if failure.status in (429, 503) else None
    return wait_s if wait_s is not None and wait_s <= LONGEST_WAIT_S else None
