"""Which sockets there are."""

from __future__ import annotations

from typing import Any

from channels.routing import URLRouter
from django.urls import re_path

from market.push.session import IngestConsumer
from market.streams.sessions.consumers import MarketConsumer, OrderFlowConsumer
from signals_feed.stream.consumer import SignalsConsumer


async def refuse(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Before the handshake, which a client sees as 403."""
    await send({"type": "websocket.close"})


sockets = URLRouter(
    [
        re_path(r"^ws/market/?$", MarketConsumer.as_asgi()),
        re_path(r"^ws/orderflow/?$", OrderFlowConsumer.as_asgi()),
        re_path(r"^ws/signals/?$", SignalsConsumer.as_asgi()),
        re_path(r"^ws/ingest/?$", IngestConsumer.as_asgi()),
        re_path(r"", refuse),  # type: ignore[arg-type]
    ]
)
