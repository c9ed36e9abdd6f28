"""Log lines about requests: which are written, how often, and with which fields."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from django.conf import settings

from core.addresses import network_of

# Log lines that strangers can cause: the first ones appear at once and whole, later ones at a limited rate,
# and the rest only as a count.
TELL_REST_EVERY_S = 10.0

# The caller that was seen longest ago is forgotten first; then only the bound of the kind applies.
MOST_CALLERS = 2_000


class Rate(NamedTuple):
    burst: float
    a_second: float


class Bucket:
    __slots__ = ("_at_s", "_left")

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._left, self._at_s = rate.burst, now_s

    def take(self, rate: Rate, now_s: float) -> bool:
        self._left = min(rate.burst, self._left + (now_s - self._at_s) * rate.a_second)
        self._at_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


class SampledLog:
    """For any thread. Nothing is written while the lock is held."""

    def __init__(
        self,
        logger: logging.Logger,
        level: int,
        of_caller: Rate,
        of_kind: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logger, self.level = logger, level
        self._of_caller, self._of_kind, self._clock = of_caller, of_kind, clock
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        self._callers: dict[tuple[str, str], Bucket] = {}
        self._kinds: dict[str, Bucket] = {}
        self._unlogged: dict[str, int] = {}
        self._unlogged_since_s = 0.0

    def tell(self, kind: str, caller: str, text: str, **fields: object) -> None:
        """`kind` is one of a few words, `caller` an account or an address."""
        if not self.logger.isEnabledFor(self.level):
            return
        with self._lock:
            now_s = self._clock()
            is_due = self._unlogged and now_s - self._unlogged_since_s >= TELL_REST_EVERY_S
            rest = self._take_rest() if is_due else {}
            is_told = self._may_tell(kind, caller, now_s)
            if not is_told:
                self._note_unlogged(kind, now_s)
        self._write_rest(rest)
        if is_told:
            self.logger.log(self.level, text, extra=fields)

    def _may_tell(self, kind: str, caller: str, now_s: float) -> bool:
        bucket = self._callers.pop((kind, caller), None) or Bucket(self._of_caller, now_s)
        self._callers[kind, caller] = bucket
        if len(self._callers) > MOST_CALLERS:
            del self._callers[next(iter(self._callers))]
        if not bucket.take(self._of_caller, now_s):
            return False
        kinds = self._kinds.get(kind)
        if kinds is None:
            kinds = self._kinds[kind] = Bucket(self._of_kind, now_s)
        return kinds.take(self._of_kind, now_s)

    def _note_unlogged(self, kind: str, now_s: float) -> None:
        if not self._unlogged:
            self._unlogged_since_s = now_s
            with suppress(RuntimeError):
                # Otherwise the last ones of a flood are counted only when the next flood comes.
                asyncio.get_running_loop().call_later(TELL_REST_EVERY_S, self.tell_rest)
        self._unlogged[kind] = self._unlogged.get(kind, 0) + 1

    def tell_rest(self) -> None:
        with self._lock:
            rest = self._take_rest()
        self._write_rest(rest)

    def _take_rest(self) -> dict[str, int]:
        rest, self._unlogged = self._unlogged, {}
        return rest

    def _write_rest(self, rest: dict[str, int]) -> None:
        for kind, count in rest.items():
            extra = {"kind": kind, "count": count}
            self.logger.log(self.level, "%d more of %s were not logged one by one", count, kind, extra=extra)


# What is logged of requests: refusals, slow ones and pages; successes of the API when they are asked for.
logger = logging.getLogger("accounts.access")

# Some 25 MB a day for each kind of refusal at most, however many strangers there are.
refused = SampledLog(logger, logging.INFO, Rate(burst=5, a_second=0.1), Rate(burst=50, a_second=1))
slow = SampledLog(logger, logging.WARNING, Rate(burst=5, a_second=0.1), Rate(burst=50, a_second=1))
visits = SampledLog(logger, logging.INFO, Rate(burst=50, a_second=1), Rate(burst=200, a_second=5))
suspicious = SampledLog(logger, logging.WARNING, Rate(burst=5, a_second=0.1), Rate(burst=5, a_second=0.1))
SAMPLED = (refused, slow, visits, suspicious)
LONGEST_TEXT = 200


class Served(NamedTuple):
    method: str
    path: str
    route: str
    status: int
    took_s: float
    request_id: str
    address: str
    who: Mapping[str, object] = {}
    """The account and its key, or the user."""
    code: str = ""
    reason: str = ""
    """Of a page that Django refused, such as a missing CSRF token."""


class LoggedSuccesses:
    """Which successes of the API are logged. The settings are read once they are set, and not for each
    answer, because that takes longer than most of what is done for it."""

    are_all = False
    slower_than_s = math.inf

    def read_settings(self, **changed: object) -> None:
        self.are_all = settings.ACCESS_LOG
        slow_ms = settings.SLOW_REQUEST_MS
        self.slower_than_s = slow_ms / 1000 if slow_ms > 0 else math.inf


logged_successes = LoggedSuccesses()


def is_slow(took_s: float) -> bool:
    return 0 < settings.SLOW_REQUEST_MS <= took_s * 1000


def log_request(served: Served, *, is_page: bool = False) -> None:
    # The query string stays out of the log: a client may have put a key into it.
    path = shown(served.path)
    text = f"{served.method} {path} {served.status}"
    ms = round(served.took_s * 1000, 1)
    fields = served._asdict() | {"path": path, "ms": ms, **served.who}
    for name in ("took_s", "who", *(name for name in ("code", "reason") if not fields[name])):
        del fields[name]
    caller = str(served.who.get("account") or network_of(served.address))
    if is_slow(served.took_s):
        slow.tell(f"slow {served.route}", caller, text, slow=True, **fields)
    elif served.status >= 400:
        refused.tell(f"{served.status} {served.code or 'page'}", caller, text, **fields)
    elif is_page:
        visits.tell("pages", caller, text, **fields)
    elif settings.ACCESS_LOG:
        logger.info(text, extra=fields)


def shown(text: str) -> str:
    """Cut, and with nothing in it that moves a terminal's cursor."""
    return ascii(text[:LONGEST_TEXT])[1:-1]


def log_refusal(kind: str, address: str, text: str, **fields: object) -> None:
    """Of what was refused before it was a request, or on a socket."""
    refused.tell(kind, network_of(address), text, address=address, **fields)


# Why Django refused a page: logged on that page's own line.
REASON = "tickwire.reason"
REFUSALS = "django.security."


class ReasonOfRefusal(logging.Handler):
    """Takes the reason from Django's own line about such a page and drops the line, which may be an error:
    strangers could cause any number."""

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
