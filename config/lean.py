"""The lean ASGI handler for /api: no middleware, no thread, no request signals, no disconnect watcher.
What runs under it must not touch the ORM on the event loop (`accounts.threads.in_thread` is the way)."""

from __future__ import annotations

from functools import cache, lru_cache
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.urls import ResolverMatch, get_resolver

from accounts.api import ON_EVERY_ANSWER, Answer, UnknownPathViewSet

# A coded slash would become part of the path before the route is looked up.
CODED_SLASHES = (b"%2f", b"%2F", b"%5c", b"%5C")
# A longer path is a mistake, and not worth remembering.
LONGEST_REMEMBERED = 100
Header = tuple[bytes, bytes]
unknown_path = UnknownPathViewSet.as_view({"get": "absent"})


class LeanRequest(ASGIRequest):
    """Method, path and scope; everything else of Django's request is made when it is first asked for."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.scope = scope
        self.method = scope["method"].upper()
        self.path = self.path_info = scope["path"]

    def __getattr__(self, name: str) -> Any:
        if "META" in self.__dict__:
            raise AttributeError(name)
        super().__init__(self.scope, BytesIO())
        return getattr(self, name)


async def answer_api(scope: dict[str, Any], receive: Any, send: Any) -> None:
    request = LeanRequest(scope)
    raw_path: bytes = scope.get("raw_path") or b""
    if b"%" in raw_path and any(coded in raw_path for coded in CODED_SLASHES):
        answer = await unknown_path(request)
    else:
        match = route(request.path)
        answer = await match.func(request, *match.args, **match.kwargs)
    await send_answer(answer, request.method == "HEAD", send)


def route(path: str) -> ResolverMatch:
    return _remembered_route(path) if len(path) <= LONGEST_REMEMBERED else get_resolver().resolve(path)


@lru_cache(maxsize=1024)
def _remembered_route(path: str) -> ResolverMatch:
    return get_resolver().resolve(path)


async def send_answer(answer: Answer, is_head: bool, send: Any) -> None:
    headers = [
        *_on_every_answer(),
        *((_name(name), value.encode("latin-1")) for name, value in answer.headers.items()),
    ]
    if answer.status != 204:
        headers += ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


@cache
def _on_every_answer() -> list[Header]:
    return [(_name(name), value.encode("latin-1")) for name, value in ON_EVERY_ANSWER.items()]


@cache
def _name(name: str) -> bytes:
    return name.lower().encode("latin-1")
