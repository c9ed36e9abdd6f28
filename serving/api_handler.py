"""The lean ASGI handler for /api and /ingest: no middleware, thread, request signals or disconnect watcher.
What runs under it must not touch the ORM on the event loop (`core.threads.in_thread` is the way)."""

import asyncio
import time
from contextlib import aclosing
from functools import cache, lru_cache
from io import BytesIO
from typing import Any, cast

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, HttpResponseBase
from django.urls import get_resolver

from core.contract.answers import ID_HEADER, StreamedResponse, started_at
from core.contract.errors import answer_exception
from serving.metrics.http_requests import http_requests, template_of

# A coded slash would become part of the path before the route is looked up. Only where a route takes a whole
# path at its end may it be coded, as generated clients send it.
CODED_SLASHES = (b"%2f", b"%2F", b"%5c", b"%5C")

# A longer path is a mistake, and not worth remembering.
LONGEST_REMEMBERED = 100
UNKNOWN = "/api"
Route = tuple[Any, dict[str, Any], str]


class ApiHandler:
    def __init__(self, unknown: Any) -> None:
        self._unknown = unknown
        """The view for unknown paths."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        began_s = started_at(scope)
        request = ASGIRequest(scope, BytesIO())
        request.receive = receive  # type: ignore[attr-defined]
        raw_path: bytes = scope.get("raw_path") or b""
        route = route_of(request.path)
        if b"%" in raw_path and any(coded in before_path(raw_path, route[2]) for coded in CODED_SLASHES):
            route = self._unknown, {}, UNKNOWN
        view, names, request.route = route  # type: ignore[attr-defined]
        response = await view(request, **names)
        if isinstance(response, StreamedResponse) and is_old(scope) and "Content-Length" not in response:
            response = await made_whole(response)
        http_requests.note(route[2], scope["method"], response.status_code, time.perf_counter() - began_s)
        await send_response(response, receive, send)


def before_path(raw_path: bytes, template: str) -> bytes:
    """What comes before the path that ends a route; all of it where none does."""
    if not template.endswith("/{path}"):
        return raw_path
    return b"/".join(raw_path.split(b"/")[: template.count("/")])


def route_of(path: str) -> Route:
    return _remembered_route(path) if len(path) <= LONGEST_REMEMBERED else _route(path)


def _route(path: str) -> Route:
    """The view of a path, which knows its viewset, the names it takes from the path, and its template."""
    match = get_resolver().resolve(path)
    return match.func, match.kwargs, template_of(match.route)


_remembered_route = lru_cache(maxsize=1024)(_route)


@cache
def _name(name: str) -> bytes:
    return name.lower().encode("latin-1")


async def send_response(response: HttpResponseBase, receive: Any, send: Any) -> None:
    headers = [(_name(name), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if isinstance(response, StreamedResponse):
        await send_streamed(response, receive, send)
    else:
        await send({"type": "http.response.body", "body": cast(HttpResponse, response).content})


async def send_streamed(response: StreamedResponse, receive: Any, send: Any) -> None:
    """Stops making the body once the client has left. If making it fails, the server aborts the connection,
    so that the client sees that the body is incomplete."""
    leaving = asyncio.ensure_future(_leaves(receive))
    try:
        async with aclosing(response.streamed) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                # A server accepts chunks without an error even when the client is gone.
                if leaving.done():
                    return
    except Exception as error:  # noqa: BLE001 - as before a body: every fault is logged, and only a bug as one
        answer_exception(error, response[ID_HEADER])
    else:
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()


def is_old(scope: dict[str, Any]) -> bool:
    """HTTP/1.0 has no chunked encoding, and its clients would take chunk headers for content."""
    return bool(scope.get("http_version") == "1.0")


async def made_whole(response: StreamedResponse) -> HttpResponseBase:
    """The body first, so that its length is known. What is made while it is sent is bounded."""
    try:
        async with aclosing(response.streamed) as chunks:
            body = b"".join([chunk async for chunk in chunks])
    except Exception as error:  # noqa: BLE001 - as above; nothing has been sent yet, so it is an answer
        return answer_exception(error, response[ID_HEADER]).as_response("GET", {})
    headers = {**response.headers, "Content-Length": str(len(body))}
    return HttpResponse(body, status=response.status_code, headers=headers)


async def _leaves(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
