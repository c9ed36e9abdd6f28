"""A WebSocket as the application has it, from the handshake to its end."""

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from core.addresses import header, is_ours

from .connection import WebSocketConnection
from .protocol import connection_of

Scope = dict[str, Any]


class WebSocketSession(AsyncWebsocketConsumer):  # type: ignore[misc]
    """What is said on it, a subclass knows. Each message is answered before the next one is read."""

    FIRST_WITHIN_S: ClassVar[float] = 10.0
    """How long a client may take to say something that lets it stay."""
    is_open = False
    _timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Without a channel layer, and the tasks that Channels waits in."""
        self.scope, self.base_send = scope, send
        try:
            while True:
                await self.dispatch(await receive())
        except StopConsumer:
            pass
        finally:
            if self.is_open:
                self.leave()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' tidying of database connections, for which all sockets would share a thread."""
        try:
            await getattr(self, get_handler_name(message))(message)
        except StopConsumer:
            raise
        except Exception as error:  # noqa: BLE001 - the top of a socket: it must not end without a word
            await self.answer_fault(error)

    async def connect(self) -> None:
        if not self.is_welcome():
            await self.close()
            return
        self.join(connection_of(self.scope, self.base_send))
        self.is_open = True
        self._timer = asyncio.get_running_loop().call_later(self.FIRST_WITHIN_S, self.first_is_late)
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.is_open:
            data = bytes_data or b"" if text_data is None else text_data.encode()
            await self.take_data(data, is_text=text_data is not None)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        raise StopConsumer

    def stay(self) -> None:
        """The client has said in time what lets it stay."""
        if self._timer is not None:
            self._timer.cancel()

    def leave(self) -> None:
        """Be gone for everybody else."""
        self.is_open = False
        self.stay()

    def is_welcome(self) -> bool:
        """Whether it means this service. Pages of any origin may connect: only a key opens anything."""
        return is_ours(header(self.scope, b"host") or "")

    @abstractmethod
    def join(self, connection: WebSocketConnection) -> None: ...

    @abstractmethod
    def first_is_late(self) -> None: ...

    @abstractmethod
    async def take_data(self, data: bytes, *, is_text: bool) -> None: ...

    @abstractmethod
    async def answer_fault(self, error: Exception) -> None:
        """A refusal, or whatever else went wrong with a message."""
