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

from core.contract.answers import ON_EVERY_ANSWER, WITHOUT_BODY, Answer, begun_at
from core.contract.errors import answer_exception
from serving.metrics.http_requests import http_requests, template_of


# A body that is made while it is sent, and no further once nobody is there to take it.
async def send_streamed(
    answer: Answer, streamed: AsyncGenerator[bytes, None], receive: Any, send: Any
) -> None:
    """If making it fails, the body has no end: the server breaks the connection off, and the client sees that
    it is not whole."""
    leaving = asyncio.ensure_future(_leaves(receive))
    try:
        async with aclosing(streamed) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                # A server takes what is sent to nobody without a word.
                if leaving.done():
                    return
    except Exception as error:  # noqa: BLE001 - as before a body: every fault is told, and only a bug as one
        answer_exception(error, answer.headers.get("X-Request-Id", ""))
    else:
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()


def is_old(scope: dict[str, Any]) -> bool:
    """HTTP/1.0 knows no chunks, and its clients would take their marks for content."""
    return bool(scope.get("http_version") == "1.0")


async def made_whole(answer: Answer, streamed: AsyncGenerator[bytes, None]) -> Answer:
    """The body first, so that its length is known. What is made while it is sent is bounded."""
    try:
        async with aclosing(streamed) as chunks:
            body = [chunk async for chunk in chunks]
    except Exception as error:  # noqa: BLE001 - as above; nothing has been sent yet, so it is an answer
        return answer_exception(error, answer.headers.get("X-Request-Id", ""))
    return Answer(tuple(body), answer.headers, answer.status, media_type=answer.media_type)


async def _leaves(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


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
        is_head = request.method == "HEAD"
        if answer.streamed is not None and answer.length is None and is_old(scope) and not is_head:
            answer = await made_whole(answer, answer.streamed)
        http_requests.note(request.route, request.method, answer.status, time.perf_counter() - began_s)
        await send_answer(answer, is_head, receive, send)


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


def of_every(answer: Answer) -> list[tuple[bytes, bytes]]:
    """Without those of which the answer has its own."""
    own = {_name(name) for name in answer.headers}
    return [(name, value) for name, value in ENCODED_ON_EVERY_ANSWER if name not in own]


async def send_answer(answer: Answer, is_head: bool, receive: Any, send: Any) -> None:
    headers = [
        *(ENCODED_ON_EVERY_ANSWER if answer.headers.keys().isdisjoint(ON_EVERY_ANSWER) else of_every(answer)),
        *((_name(name), value.encode("latin-1")) for name, value in answer.headers.items()),
    ]
    length = len(answer.body) if answer.streamed is None else answer.length
    if answer.status not in WITHOUT_BODY:
        headers.append((b"content-type", answer.media_type.encode("latin-1")))
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.streamed is None:
        await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
    elif is_head:
        await answer.streamed.aclose()
        await send({"type": "http.response.body", "body": b""})
    else:
        await send_streamed(answer, answer.streamed, receive, send)
