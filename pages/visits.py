"""What is counted and logged of a page: its route, how long it took, and whose session it was."""

import time
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponseBase

from core.addresses import address_of
from core.contract.request_ids import new_request_id
from core.logs.refused_pages import REASON
from core.logs.requests import Served, log_request
from serving.metrics.http_requests import http_requests, template_of
from serving.prometheus import METRICS_PATH

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
        # What has been read of it. `get` would ask the database, which may be away and is for threads alone.
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
