"""The ASGI application: /api and /ingest, pages and sockets, each with a handler of its own."""

import asyncio
import logging
import os
from collections.abc import Awaitable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from django.urls import re_path  # noqa: E402

from .installation import prepare  # noqa: E402

prepare()
# The imports below need all apps.
django.setup(set_prefix=False)

from accounts.short_path import find  # noqa: E402
from core.contract.errors import ApiError, NotFound, new_request_id, refusal_answer  # noqa: E402
from core.viewset import UnknownPathViewSet  # noqa: E402
from market.push.consumer import IngestConsumer  # noqa: E402
from market.streams.consumer import StreamConsumer  # noqa: E402
from market.streams.market_streams import candles, order_flow, prices  # noqa: E402
from news.stream import news  # noqa: E402
from pages.handler import PageHandler  # noqa: E402
from serving.api_handler import ApiHandler, send_response  # noqa: E402
from serving.draining import draining  # noqa: E402
from serving.http.short_path import STATE_NAME, ShortPath  # noqa: E402
from serving.readiness import PATHS, answer_probe  # noqa: E402
from serving.request_echo import HTTP_PATH, SOCKET_PATH, answer_echo, echo_socket  # noqa: E402
from signals_feed.stream import signals  # noqa: E402

from .checks import refuse_unsafe  # noqa: E402
from .wiring import BACKGROUND, Act  # noqa: E402

logger = logging.getLogger(__name__)


class Service:
    """What runs beside the requests of a process."""

    def __init__(self) -> None:
        self.is_ready = False
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        for start, _ in BACKGROUND:
            await done(start)
        self.is_ready = True

    async def stop(self) -> None:
        """If one part fails to stop, those after it still write their data."""
        self.is_ready = False
        for _, stop in reversed(BACKGROUND):
            try:
                await done(stop)
            except Exception:
                logger.exception("A part of the service could not stop in order; the others do")

    async def ensure(self) -> None:
        """A server without lifespan (daphne) starts it with its first request, and later ones wait."""
        if not self.is_ready:
            async with self._starting:
                if not self.is_ready:
                    await self.start()


async def done(act: Act | None) -> None:
    if act is not None and (waits := act()) is not None:
        await waits


service = Service()
answer_api = ApiHandler(UnknownPathViewSet.as_view({"get": "absent"}))
answer_page = PageHandler()
SOCKETS = [
    re_path("^ws/?$", StreamConsumer.as_asgi()),
    re_path("^ws/market/?$", StreamConsumer.as_asgi(stream=prices)),
    re_path("^ws/orderflow/?$", StreamConsumer.as_asgi(stream=order_flow)),
    re_path("^ws/candles/?$", StreamConsumer.as_asgi(stream=candles)),
    re_path("^ws/signals/?$", StreamConsumer.as_asgi(stream=signals)),
    re_path("^ws/news/?$", StreamConsumer.as_asgi(stream=news)),
    re_path("^ws/ingest/?$", IngestConsumer.as_asgi()),
    re_path(f"^{SOCKET_PATH[1:]}$", echo_socket),  # type: ignore[arg-type]
]


class SocketRouter(URLRouter):  # type: ignore[misc]
    def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Awaitable[None]:
        """As in Channels, but not a coroutine, which would stay in memory as long as the socket. No path has
        arguments, so `url_route` is not set."""
        path = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/")
        route = next(each for each in self.routes if each.pattern.match(path))
        answer: Awaitable[None] = route.callback(scope, receive, send)
        return answer


# Answers to requests for a stream that does not exist, or without the WebSocket protocol. ASGI
# can answer a handshake like any other request.
HTTP_RESPONSE = "websocket.http.response"


class NoStream(NotFound):
    message = "There is no stream at this path. /docs/streams lists all of them."


class NeedsWebSocket(ApiError):
    """As the server itself refuses a handshake in another version."""

    status_code, code = 426, "invalid_upgrade"
    message = "This path is a stream: connect to it with a WebSocket client. /docs/streams shows how."

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"Upgrade": "websocket", "Connection": "Upgrade"}


async def refuse_stream(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if HTTP_RESPONSE not in (scope.get("extensions") or {}):
        # Such a server answers with a bare 403.
        await send({"type": "websocket.close"})
        return

    async def send_instead(message: dict[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    response = refusal_answer(NoStream(), new_request_id()).as_response("GET", {})
    await send_response(response, receive, send_instead)


async def ask_for_websocket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    answer = refusal_answer(NeedsWebSocket(), new_request_id())
    await send_response(answer.as_response(scope["method"], {}), receive, send)


answer_socket = SocketRouter([*SOCKETS, re_path("", refuse_stream)])  # type: ignore[arg-type]

# Under any server; `serve` and `check` name everything that is unsafe.
refuse_unsafe()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await answer_lifespan(scope, receive, send)
        return
    await service.ensure()
    if scope["type"] == "http":
        if draining.is_on:
            send = draining.last_answer(send)
        path: str = scope["path"]
        if path in PATHS:
            await answer_probe(scope, send)
        elif path.startswith("/api/") or path in ("/api", "/ingest/ticks", "/ingest/ticks/"):
            await answer_api(scope, receive, send)
        elif path == HTTP_PATH:
            await answer_echo(scope, send)
        elif any(route.pattern.match(path[1:]) for route in SOCKETS):
            await ask_for_websocket(scope, receive, send)
        else:
            await answer_page(scope, receive, send)
    else:
        await answer_socket(scope, receive, send)


async def answer_lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The server takes no request before the service is ready."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await service.start()
                # Only a server of ours looks there; any other has the ordinary path alone.
                scope.setdefault("state", {})[STATE_NAME] = ShortPath(find)
            except Exception as error:  # noqa: BLE001 - the server must report it, whatever it is
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await service.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
