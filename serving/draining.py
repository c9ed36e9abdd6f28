"""Whether this process is about to stop. Requests are still answered, each as the last on its connection."""

from collections.abc import Awaitable, Callable
from typing import Any

CLOSE = (b"connection", b"close")


class Draining:
    def __init__(self) -> None:
        self.is_on = False
        self.before_closing: list[Callable[[], Awaitable[None]]] = []
        """Called when no more connections are accepted, just before all are closed."""

    def begin(self) -> None:
        self.is_on = True

    def last_answer(self, send: Any) -> Any:
        """Else a proxy would send its next request into a connection that ends at this very moment."""

        async def send_last(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], CLOSE]
            await send(message)

        return send_last


draining = Draining()
