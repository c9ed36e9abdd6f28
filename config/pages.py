"""Pages, on Django's own handler: each is made in one of a few threads and sent when that serves the next."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import set_script_prefix

from accounts.exceptions import InvalidParameter, Overloaded
from accounts.hosts import check_host

from .page_refusals import refuse
from .page_threads import PageThreads

MOST_WAITING = 128
# Who asks how the service is doing does not queue with those who keep it busy.
FOR_OPERATORS = frozenset(("/readyz", "/metrics"))
STILL_ALIVE = b'{"status": "ok"}'


def host_of(scope: dict[str, Any]) -> str | None:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return b",".join(hosts).decode("latin-1") if hosts else None


class PageHandler(ASGIHandler):
    """Without Django's watcher for clients that leave: what runs in a thread cannot be stopped anyway."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = PageThreads(settings.PAGE_THREADS, MOST_WAITING, "pages")
        self._reserved = PageThreads(1, MOST_WAITING, "operators")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if path == "/healthz" and scope["method"] in ("GET", "HEAD"):
            await self.send_response(HttpResponse(STILL_ALIVE, content_type="application/json"), send)
            return
        try:
            # Django would take the server's own name where none is sent, and log who sends another at length.
            check_host(host_of(scope), scope["http_version"])
        except InvalidParameter as refusal:
            await self._finish(refuse(scope, refusal), send)
            return
        try:
            # Before it has a thread: whoever sends slowly keeps nobody else waiting.
            body = await self.read_body(receive)
        except RequestAborted:
            return
        threads = self._reserved if path in FOR_OPERATORS else self._threads
        try:
            async with threads.lease():
                if await has_left(receive):
                    return
                response = await self._respond(scope, body)
        except Overloaded as refusal:
            response = refuse(scope, refusal)
        finally:
            body.close()
        await self._finish(response, send)

    async def _respond(self, scope: dict[str, Any], body: Any) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        await signals.request_started.asend(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else await self.run_get_response(request)
        if not isinstance(response, StreamingHttpResponse):
            await sync_to_async(response.close)()
        elif not response.is_async:
            pieces: Any = response.streaming_content
            response.streaming_content = [await sync_to_async(b"".join)(pieces)]
        return response  # type: ignore[no-any-return]

    async def _finish(self, response: HttpResponseBase, send: Any) -> None:
        """Whoever reads slowly keeps nobody waiting either."""
        await self.send_response(response, send)
        if response.streaming:
            await asyncio.to_thread(response.close)


async def has_left(receive: Any) -> bool:
    """Whether the client is gone already: it may have waited longer than it meant to."""
    message: asyncio.Future[Any] = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    message.cancel()
    return message.done()
