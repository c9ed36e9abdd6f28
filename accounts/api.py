"""The base of the REST contract. A viewset's `dispatch` is a coroutine here: it authenticates,
limits, runs the action and adds the headers, without a thread unless the action needs the ORM."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

import msgspec
from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.viewsets import ViewSet

from .authentication import key_ring
from .connections import note_known
from .exceptions import InvalidApiKey, MethodNotAllowed, MissingApiKey, NotFound
from .hosts import check_host
from .loopback import is_loopback
from .parameters import QuerySerializer, read_parameters
from .plain_http import refuse_plain
from .plain_json import encode as encode
from .throttling import limit_headers, refuse, throttle
from .tiers import Caller
from .usage_tally import usage

access_log = logging.getLogger("accounts.access")
T = TypeVar("T")

METHODS = "GET, HEAD, OPTIONS"
EXPOSED = ", ".join(
    (
        "X-Request-Id, X-API-Version, Retry-After, X-Last-Closed, X-Quote-Age-Ms, X-Market-State",
        "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit",
        "X-AI-Limit, X-AI-Remaining, X-AI-Reset",
    )
)
ON_EVERY_ANSWER = {
    "X-API-Version": "1",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": EXPOSED,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
if settings.SECURE_HSTS_SECONDS:
    ON_EVERY_ANSWER["Strict-Transport-Security"] = (
        f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains; preload"
    )
ON_PREFLIGHT = {
    "Allow": METHODS,
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": "X-API-Key",
    "Access-Control-Max-Age": "86400",
}


# 256 is a multiple of 32, so every letter is as likely as any other.
LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8


class Answer(msgspec.Struct):
    """What an action gives back: an encoded body, and headers of its own."""

    body: bytes
    headers: dict[str, str] = {}
    status: int = 200

    def as_response(self, method: str | None) -> HttpResponse:
        headers = {**ON_EVERY_ANSWER, **self.headers}
        if self.status == 204:
            return HttpResponse(status=204, headers=headers)
        headers["Content-Length"] = str(len(self.body))
        body = b"" if method == "HEAD" else self.body
        return HttpResponse(body, status=self.status, content_type="application/json", headers=headers)


def iso_time(moment: datetime) -> str:
    """2026-11-21T12:00:00.250Z; a naive one comes from SQLite, which keeps UTC without saying so."""
    utc = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def new_request_id() -> str:
    return "req_" + os.urandom(16).translate(LETTERS).decode()


def scope_of(request: HttpRequest) -> dict[str, Any]:
    """The ASGI scope. Django's synchronous handler has none: what is read of it is made from the request."""
    try:
        return request.scope  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        return {
            "headers": headers,
            "http_version": request.META.get("SERVER_PROTOCOL", "HTTP/1.1")[5:],
            "query_string": request.META.get("QUERY_STRING", ""),
        }


def header(request: HttpRequest, name: bytes) -> str | None:
    """A header straight from the scope: `request.headers` would decode all of them for one."""
    values = [value for sent, value in scope_of(request)["headers"] if sent == name]
    return b",".join(values).decode("latin-1") if values else None


class ApiViewSet(ViewSet):
    """Actions are coroutines that return an `Answer` and raise `ApiError`."""

    is_free: ClassVar[bool] = False
    """A free path answers even when the window is used up."""
    caller: Caller

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Callable[..., Any]:  # type: ignore[override]
        return markcoroutinefunction(super().as_view(actions, **initkwargs))

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Under Django's own handlers. The lean one calls `answer` and spares itself the response."""
        return (await self.answer(request, **kwargs)).as_response(request.method)

    async def answer(self, request: HttpRequest, **kwargs: Any) -> Answer:
        started_at = time.perf_counter()
        request_id = new_request_id()
        headers = {"X-Request-Id": request_id}
        try:
            answer = await self._respond(request, headers, kwargs)
        except Exception as error:  # noqa: BLE001 - the top of a request: every fault becomes the one error body
            answer = self._refuse(error, request_id)
        answer.headers |= headers
        self._log(request, answer.status, request_id, started_at)
        return answer

    async def _respond(self, request: HttpRequest, headers: dict[str, str], kwargs: dict[str, Any]) -> Answer:
        if request.method == "OPTIONS":
            return Answer(b"", dict(ON_PREFLIGHT), status=204)
        refuse_plain(scope_of(request))
        self.caller = await self._identify(request)
        standing = await (throttle.look if self.is_free else throttle.admit)(self.caller)
        headers |= limit_headers(standing, self.caller.allowances.tier)
        if not standing.admitted and not self.is_free:
            raise refuse(standing, self.caller)
        if not self.is_free:
            usage.note_request(self.caller.account_id)
        check_host(header(request, b"host"), scope_of(request)["http_version"])
        action = self._action_for(str(request.method))
        return await action(request, **kwargs)  # type: ignore[no-any-return]

    def _refuse(self, error: Exception, request_id: str) -> Answer:
        response = self.get_exception_handler()(error, {"request_id": request_id})
        headers = {name: value for name, value in response.items() if name != "Content-Type"}
        return Answer(response.content, headers, response.status_code)

    def _action_for(self, method: str) -> Callable[..., Any]:
        """HEAD is answered as GET without its body."""
        if method not in ("GET", "HEAD"):
            error = MethodNotAllowed()
            error.headers["Allow"] = METHODS
            raise error
        return getattr(self, self.action_map["get"])  # type: ignore[no-any-return]

    @staticmethod
    async def _identify(request: HttpRequest) -> Caller:
        key = header(request, b"x-api-key")
        caller = await key_ring.find(key) if key else None
        if caller is None or (caller.is_demo and not is_loopback(request)):
            await throttle.count_failure(request.META.get("REMOTE_ADDR") or "")
            error = InvalidApiKey() if key else MissingApiKey()
            error.headers["WWW-Authenticate"] = "ApiKey"
            raise error
        note_known(scope_of(request))
        return caller

    @staticmethod
    def parameters(request: HttpRequest, serializer: type[QuerySerializer]) -> dict[str, Any]:
        # A broken sequence becomes U+FFFD, which no parameter accepts.
        query_string: bytes | str = scope_of(request)["query_string"]
        if isinstance(query_string, bytes):
            query_string = query_string.decode(errors="replace")
        return read_parameters(serializer, query_string)

    @staticmethod
    def _log(request: HttpRequest, status: int, request_id: str, started_at: float) -> None:
        if access_log.isEnabledFor(logging.INFO):
            # The query string stays out of the log: somebody may have put a key into it.
            path = ascii(request.path[:200])[1:-1]
            took_ms = (time.perf_counter() - started_at) * 1000
            access_log.info("%s %s %d %.1f ms %s", request.method, path, status, took_ms, request_id)


class UnknownPathViewSet(ApiViewSet):
    """Every other path below /api, behind the same door as the known ones."""

    def _action_for(self, method: str) -> Callable[..., Any]:
        return self.absent

    async def absent(self, request: HttpRequest) -> Answer:
        raise NotFound
