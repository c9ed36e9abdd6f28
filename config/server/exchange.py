"""One request and its answer, as the application has them."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

if TYPE_CHECKING:
    from .protocol import HttpProtocol


class Exchange(RequestResponseCycle):
    """Its transport is the protocol, which knows how to close when something is still to come."""

    transport: HttpProtocol  # type: ignore[assignment]

    def send(self, message: Any) -> Coroutine[Any, Any, None]:
        begins = not self.response_started and not self.disconnected
        if begins and self.more_body and not self.transport.will_hear_the_rest():
            self.keep_alive = False
        return super().send(message)

    def give_up(self) -> None:
        """The application hears that the client is gone; what it still says goes nowhere."""
        self.disconnected = True
        self.message_event.set()
