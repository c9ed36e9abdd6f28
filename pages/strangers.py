"""Limits the cost of visitors without a login: pages that are the same for all are cached for a few seconds,
and each address has an allowance of processor time."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from core.addresses import address_of, network_of
from core.contract.errors import RateLimitExceeded, new_request_id
from core.deadlines import patient
from core.logs import REASON, Served, log_request
from core.request_headers import header
from serving.metrics.http_requests import http_requests, template_of
from serving.prometheus import METRICS_PATH

# What is counted and logged of a page: its route, how long it took, and whose session it was.
NOWHERE, STATIC = "nowhere", "/static"
ROUTE, USER = "tickwire.route", "tickwire.user"

# A scrape comes every few seconds, and a page brings a dozen files.
UNLOGGED = frozenset((STATIC, METRICS_PATH))


def note_route(scope: dict[str, Any], request: HttpRequest) -> None:
    """What Django found out about the request."""
    if request.resolver_match is not None:
        scope[ROUTE] = template_of(request.resolver_match.route)
    session = getattr(request, "session", None)
    if session is not None:
        # Only what has been read already: `get` would query the database, which may be away and is only for
        # threads.
        scope[USER] = vars(session).get("_session_cache", {}).get(SESSION_KEY)


class PageVisit:
    def __init__(self, scope: dict[str, Any]) -> None:
        self._scope, self._began_s = scope, time.perf_counter()

    def answered(self, response: HttpResponseBase) -> None:
        scope, status = self._scope, response.status_code
        took_s = time.perf_counter() - self._began_s
        route = self._route()
        http_requests.note(route, scope["method"], status, took_s)
        request_id = response.headers.get("X-Request-Id") or new_request_id()
        response.headers["X-Request-Id"] = request_id
        if route in UNLOGGED and status < 400:
            return
        user = scope.get(USER)
        served = Served(
            scope["method"],
            scope["path"],
            route,
            status,
            took_s,
            request_id,
            address_of(scope),
            {"user": user} if user else {},
            reason=scope.get(REASON, ""),
        )
        log_request(served, is_page=True)

    def _route(self) -> str:
        found: str | None = self._scope.get(ROUTE)
        if found is not None:
            return found
        return STATIC if self._scope["path"].startswith(settings.STATIC_URL) else NOWHERE


KEPT_S = 5.0
MOST_BYTES, SIZE_OF_REST = 16_000_000, 2_000
# Pages that are expensive to make, and the same for all visitors without a login.
SHARED = frozenset(("publishers", "publisher_page", "publisher_scorecard", "publisher_marks", "signal_page"))

PageKey = tuple[str | bytes | None, ...]


def key_of(scope: dict[str, Any]) -> PageKey | None:
    """Equal for requests that are answered alike; None where the answer may depend on the user."""
    if scope["method"] != "GET" or header(scope, b"cookie") is not None:
        return None
    # By these a page writes the addresses in it.
    origin = header(scope, b"host"), header(scope, b"x-forwarded-proto"), scope["scheme"]
    return *origin, scope["path"], scope["query_string"]


class KeptPage(NamedTuple):
    content: bytes
    headers: dict[str, str]
    route: str
    size: int
    made_at: float
    kept_s: float = KEPT_S


class KeptPages:
    """Answers of one process to strangers. While one waits for a new one, the others get the last, but none
    that is twice as old."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.clear()

    def clear(self) -> None:
        self._kept: OrderedDict[PageKey, KeptPage] = OrderedDict()
        self._bytes = 0

    def get(self, scope: dict[str, Any]) -> HttpResponse | None:
        key = key_of(scope)
        kept = None if key is None else self._kept.get(key)
        if kept is None or self._now() - kept.made_at >= kept.kept_s:
            return None
        scope[ROUTE] = kept.route
        strangers_work.add(address_of(scope), SENDING_S)
        return HttpResponse(kept.content, headers=kept.headers)

    def renew(self, scope: dict[str, Any]) -> None:
        """Called when a new one is being made."""
        key = key_of(scope)
        if key is not None and key in self._kept:
            self._kept[key] = self._kept[key]._replace(kept_s=2 * KEPT_S)

    def put(self, scope: dict[str, Any], request: HttpRequest, response: HttpResponseBase) -> None:
        """An answer that cannot be cached replaces the previous one."""
        key = key_of(scope)
        if key is None:
            return
        if (before := self._kept.pop(key, None)) is not None:
            self._bytes -= before.size
        if isinstance(response, HttpResponse) and is_shared(request, response):
            # A stranger chooses how long the parts of the key are.
            size = len(response.content) + sum(map(len, filter(None, key))) + SIZE_OF_REST
            kept = KeptPage(response.content, dict(response.headers), scope[ROUTE], size, self._now())
            self._kept[key] = kept
            self._bytes += kept.size
        while self._bytes > MOST_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1].size


def is_shared(request: HttpRequest, response: HttpResponse) -> bool:
    """Forms and messages belong to one user; their pages set a cookie."""
    match = request.resolver_match
    return (
        match is not None
        and match.url_name in SHARED
        and response.status_code == 200
        and not response.cookies
    )


# Of the processor, for each address: so long at once, and this share of it in the long run.
WORK_S, SHARE = 6.0, 0.1
# What a page that is kept counts as: ten times what a large one takes, because the loop itself sends it.
SENDING_S = 0.02
REFUSED_AFTER_S = 1.0
SWEEP_ABOVE = 10_000
# Behind a proxy on this machine that is not trusted, all clients seem to be this one.
HERE = frozenset(("127.0.0.1", network_of("::1")))
TOO_MUCH = "The pages that this address asked for took too much time. Try again later."


class StrangersWork:
    """How long the pages of an address kept the processor busy, less what has been forgiven since."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.clear()

    def clear(self) -> None:
        self._worked: dict[str, tuple[float, float]] = {}
        """By network: the seconds, and when they were last updated."""
        self._sweep_above = SWEEP_ABOVE

    def add(self, address: str, seconds: float) -> None:
        network = network_of(address)
        if network in HERE:
            return
        if len(self._worked) >= self._sweep_above:
            self._worked = {each: worked for each, worked in self._worked.items() if self._left(each)}
            self._sweep_above = max(SWEEP_ABOVE, 2 * len(self._worked))
        self._worked[network] = self._left(network) + seconds, self._now()

    def refusal(self, address: str) -> RateLimitExceeded | None:
        wait_s = (self._left(network_of(address)) - patient(WORK_S)) / SHARE
        return RateLimitExceeded(TOO_MUCH, retry_after=math.ceil(wait_s)) if wait_s > 0 else None

    def _left(self, network: str) -> float:
        seconds, at = self._worked.get(network, (0.0, 0.0))
        return max(0.0, seconds - SHARE * (self._now() - at))


kept_pages = KeptPages()
strangers_work = StrangersWork()
