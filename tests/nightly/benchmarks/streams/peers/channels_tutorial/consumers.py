"""The consumer of the tutorial's third part, for ticks instead of chat."""

from __future__ import annotations

import json
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

GROUP = "ticks"


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
