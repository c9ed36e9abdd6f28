"""`CLIENT_PORT TICK_PORT`: daphne with the consumer of the third part of Channels' tutorial, for ticks
instead of chat; each is sent to the group. https://channels.readthedocs.io/en/stable/tutorial/"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import django
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from channels.routing import ProtocolTypeRouter, URLRouter
from daphne.server import Server
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import re_path
from twisted.internet import reactor

GROUP = "ticks"
due: asyncio.Queue[str] = asyncio.Queue()


class TickConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """All hear all: there is one group."""

    async def tick_message(self, event: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(event["message"], separators=(",", ":")))


async def hand_on(tick_port: int) -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            due.put_nowait(line.decode())

    await asyncio.start_server(take, "127.0.0.1", tick_port)
    layer = get_channel_layer()
    while True:
        await layer.group_send(GROUP, {"type": "tick.message", "message": json.loads(await due.get())})


def main() -> None:
    port, tick_port = map(int, sys.argv[1:3])
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    layer = {"BACKEND": backend, "CONFIG": {"hosts": [os.environ["REDIS_URL"]]}}
    settings.configure(ALLOWED_HOSTS=["*"], INSTALLED_APPS=["daphne"], CHANNEL_LAYERS={"default": layer})
    django.setup()
    routes = URLRouter([re_path(r"", TickConsumer.as_asgi())])
    application = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": routes})
    server = Server(application, [f"tcp:port={port}:interface=127.0.0.1"], signal_handlers=False)
    reactor.callWhenRunning(lambda: asyncio.get_event_loop().create_task(hand_on(tick_port)))
    server.run()


if __name__ == "__main__":
    main()
