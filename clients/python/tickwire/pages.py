"""Where a walk over pages is: what to ask for next, and what came. It does no I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import httpx

from .answers import BROKEN_OFF, Value, given, require_success, wait_before_again, wait_before_going_on
from .errors import Address, ApiError, BrokenAnswer, WalkInterrupted, WalkUnreachable

logger = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C")

Moment = datetime | str | int
"""A datetime with a zone, an ISO 8601 text (UTC unless it has a zone), or milliseconds since the epoch."""

LONGEST_PAGE = 10_000
# A restart of the service is over by then; what lasts longer, somebody should hear of.
QUIET_FAILURES = 3


class Page(Generic[T]):
    def __init__(self, items: list[T], next: str | None) -> None:
        self.items, self.next = items, next

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Route:
    """What is walked over. `items` is the name of an answer's list."""

    path: str
    items: str
    parameters: dict[str, Value]
    cursor: str | None = None


@dataclass(frozen=True)
class Form(Generic[C]):
    """How pages are sent, and how one is read: what it holds, and the next cursor."""

    accept: str
    read: Callable[[httpx.Response, Route], tuple[C, str | None]]


def read_page(answer: httpx.Response, route: Route) -> tuple[Page[Any], str | None]:
    try:
        body = answer.json()
        page: Page[Any] = Page(body[route.items], body["next"])
    except (ValueError, KeyError, TypeError):
        raise BrokenAnswer("The response was not a complete page.") from None
    return page, page.next


def read_csv(answer: httpx.Response, route: Route) -> tuple[str, str | None]:
    text = answer.text
    if not text.endswith("\n"):
        raise BrokenAnswer("The response ended in the middle of a line.")
    return text, next_cursor(answer)


def next_cursor(answer: httpx.Response) -> str | None:
    return answer.headers.get("X-Next-Cursor") or None


JSON: Form[Page[Any]] = Form("application/json", read_page)
CSV: Form[str] = Form("text/csv", read_csv)


class Place(Generic[C]):
    """Of one walk. Until the service was reached it gives up as soon as any call, so that a wrong address is
    told at once; then it does so late, as much would be lost."""

    def __init__(
        self, route: Route, form: Form[C], address: Address, retries: int, walk_retries: int
    ) -> None:
        self._route, self._form, self._address = route, form, address
        self._cursor, self._failures = route.cursor, 0
        self._retries, self._walk_retries = retries, walk_retries
        self._was_reached = self.is_at_end = False

    @property
    def path(self) -> str:
        return self._route.path

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept": self._form.accept}

    def query(self) -> dict[str, str | int]:
        return given(self._route.parameters | {"cursor": self._cursor})

    def take(self, answer: httpx.Response) -> C:
        """What a page holds, if it is whole; only then is the place behind it."""
        require_success(answer)
        content, self._cursor = self._form.read(answer, self._route)
        self._failures, self._was_reached, self.is_at_end = 0, True, self._cursor is None
        return content

    def wait_after(self, failure: Exception) -> float:
        """Seconds to wait before the same page is asked for again; or what failed, where that is in vain."""
        attempt = self._failures
        self._failures += 1
        self._was_reached = self._was_reached or isinstance(failure, BROKEN_OFF)
        if not self._was_reached:
            return self._wait_to_begin(failure, attempt)
        wait_s = wait_before_going_on(failure, attempt)
        if wait_s is None:
            raise failure
        if attempt >= self._walk_retries:
            raise WalkInterrupted(self.path, self._failures, self._cursor, failure) from failure
        if not isinstance(failure, ApiError) and self._failures == QUIET_FAILURES:
            logger.warning("The next page of /api/%s cannot be read; trying again: %s", self.path, failure)
        return wait_s

    def _wait_to_begin(self, failure: Exception, attempt: int) -> float:
        wait_s = wait_before_again(failure, attempt)
        if wait_s is not None and attempt < self._retries:
            return wait_s
        if isinstance(failure, httpx.TransportError):
            raise WalkUnreachable(self._address, self._cursor, failure) from failure
        raise failure


def as_parameter(moment: Moment | None, name: str) -> Value:
    if moment is None or isinstance(moment, int):
        return moment
    if not isinstance(moment, datetime):
        return _checked(str(moment), name)
    if moment.tzinfo is None:
        raise ValueError(f"{name} needs a zone, such as datetime(2026, 11, 20, tzinfo=UTC).")
    return as_text(moment)


def _checked(text: str, name: str) -> str:
    """Here, because the service's own error says how a time is written in an address."""
    if is_number(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{name} is {text!r}, but must be a date or a time, such as 2026-11-20 or 2026-11-20T14:00 (UTC "
            "unless a zone is given), a datetime with a zone, or milliseconds since the epoch."
        ) from None
    return text if moment.tzinfo else as_text(moment.replace(tzinfo=UTC))


def read_moment(text: str) -> datetime:
    """For the command line, which takes the same texts."""
    if is_number(text):
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_number(text: str) -> bool:
    """Of milliseconds; 20261120 is a date."""
    return text.isascii() and text.isdigit() and len(text) != len("20261120")


def as_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def time_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
