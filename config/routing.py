"""Which sockets there are."""

from __future__ import annotations

from typing import Any

from channels.routing import URLRouter
from django.urls import re_path

from market.consumers import MarketConsumer, OrderFlowConsumer
from market.ingest.consumer import IngestConsumer
from signals_feed.consumers import SignalsConsumer


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
