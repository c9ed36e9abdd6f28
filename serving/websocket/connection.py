"""What a hub asks of a connection."""

from collections.abc import Callable
from typing import Protocol

NO_DESCRIPTOR = -1


class ConnectionWatcher(Protocol):
    def paused(self) -> None:
        """Its buffers are full. This may come from inside a write."""

    def resumed(self) -> None:
        """There is room again."""

    def ended(self) -> None:
        """A close frame went out or the socket is gone, so nothing may be written any more."""


class WebSocketConnection(Protocol):
    watcher: ConnectionWatcher | None
    farewell: Callable[[], bytes] | None
    """Makes the last payload before the close when the server is shut down."""

    at_restart: Callable[[], None] | None
    """Called instead when the server is shut down: whoever sets it closes the connection, and soon."""

    flooded: Callable[[], bytes] | None
    """Makes the last payload before the close at a flood."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Whole frames, at once and in order; it never waits."""

    @property
    def descriptor(self) -> int:
        """The kernel's number of the socket if frames may go straight there now, else `NO_DESCRIPTOR`."""

    @property
    def waiting(self) -> int:
        """Bytes that were written and not yet sent."""

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        """Its client has little to say, so close on a longer message and on many unread ones. Floods of
        pings, pongs and fragments close any connection."""

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        """Close after what was written and the frames `last`, or abort if the client does not read them."""

    def abort(self) -> None: ...
