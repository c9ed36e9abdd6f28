"""The lean ASGI handler for /api: no middleware, no thread, no request signals, no disconnect watcher.
What runs under it must not touch the ORM on the event loop (`accounts.threads.in_thread` is the way)."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.urls import get_resolver

from accounts.api import UnknownPathViewSet

# A coded slash would become part of the path before the route is looked up.
CODED_SLASHES = (b"%2f", b"%2F", b"%5c", b"%5C")
unknown_path = UnknownPathViewSet.as_view({"get": "absent"})


async def answer_api(scope: dict[str, Any], receive: Any, send: Any) -> None:
    request = ASGIRequest(scope, BytesIO())
    raw_path: bytes = scope.get("raw_path") or b""
    if any(coded in raw_path for coded in CODED_SLASHES):
        response = await unknown_path(request)
    else:
        match = get_resolver().resolve(request.path_info)
        response = await match.func(request, *match.args, **match.kwargs)
    await send_response(response, send)


async def send_response(response: HttpResponse, send: Any) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
