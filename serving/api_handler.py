"""The lean ASGI handler for /api and /ingest: no middleware, thread, request signals or disconnect watcher.
What runs under it must not touch the ORM on the event loop (`core.threads.in_thread` is the way)."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.urls import get_resolver

from core.contract.answers import ON_EVERY_ANSWER, WITHOUT_BODY, Answer
from core.contract.begun import begun_at
from core.contract.errors import answer_exception
from serving.metrics.http_requests import http_requests, template_of

# A coded slash would become part of the path before the route is looked up.
CODED_SLASHES = (b"%2f", b"%2F", b"%5c", b"%5C")

# A longer path is a mistake, and not worth remembering.
LONGEST_REMEMBERED = 100
UNKNOWN = "/api"
Route = tuple[Any, dict[str, Any], str]


class LeanRequest(ASGIRequest):
    """What both read at once; the rest of Django's request is made when it is first asked for."""

    route = ""

    def __init__(self, scope: dict[str, Any], receive: Any) -> None:
        self.scope, self.receive = scope, receive
        self.method = scope["method"].upper()
        self.path = self.path_info = scope["path"]

    def __getattr__(self, name: str) -> Any:
        if "META" in self.__dict__:
            raise AttributeError(name)
        super().__init__(self.scope, BytesIO())
        return getattr(self, name)


class ApiHandler:
    def __init__(self, unknown: Any) -> None:
        self._unknown = unknown
        """The view of a path that there is not."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        began_s = begun_at(scope)
        request = LeanRequest(scope, receive)
        raw_path: bytes = scope.get("raw_path") or b""
        if b"%" in raw_path and any(coded in raw_path for coded in CODED_SLASHES):
            route: Route = self._unknown, {}, UNKNOWN
        else:
            route = route_of(request.path)
        view, names, request.route = route
        answer = await view.cls(**view.initkwargs, action_map=view.actions).answer(request, **names)
        http_requests.note(request.route, request.method, answer.status, time.perf_counter() - began_s)
        if answer.streamed is None:
            await send_answer(answer, request.method == "HEAD", send)
        else:
            await stream_answer(answer, answer.streamed, request.method == "HEAD", receive, send)


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


ENCODED_ON_EVERY_ANSWER = [(_name(name), value.encode("latin-1")) for name, value in ON_EVERY_ANSWER.items()]


async def send_answer(answer: Answer, is_head: bool, send: Any) -> None:
    await send(head_of(answer, len(answer.body)))
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


def head_of(answer: Answer, length: int | None) -> dict[str, Any]:
    headers = [
        *ENCODED_ON_EVERY_ANSWER,
        *((_name(name), value.encode("latin-1")) for name, value in answer.headers.items()),
    ]
    if answer.status not in WITHOUT_BODY:
        headers.append((b"content-type", answer.media_type.encode("latin-1")))
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


async def stream_answer(
    answer: Answer, streamed: AsyncGenerator[bytes, None], is_head: bool, receive: Any, send: Any
) -> None:
    """Whatever happens meanwhile, what makes the body is closed. A body that fails does not end, so that the
    server breaks the connection off."""
    leaving = asyncio.ensure_future(has_left(receive))
    try:
        async with aclosing(streamed) as chunks:
            await send(head_of(answer, answer.length))
            if not is_head:
                async for chunk in chunks:
                    if leaving.done():
                        return
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except Exception as error:  # noqa: BLE001 - as in front of a body: every fault is told, and only a bug as one
        answer_exception(error, answer.headers.get("X-Request-Id", ""))
    else:
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()


async def has_left(receive: Any) -> None:
    """The server hears it at once; what is sent to nobody is taken without a word."""
    while (await receive())["type"] != "http.disconnect":
        pass
