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
        """A close frame went out or the socket is gone: nothing may be written any more."""


class WebSocketConnection(Protocol):
    watcher: ConnectionWatcher | None
    farewell: Callable[[], bytes] | None
    """Makes the payload that goes before the close when the server is shut down."""

    flooded: Callable[[], bytes] | None
    """Makes the payload that goes before the close at a flood."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Whole frames, at once and in order; it never waits."""

    @property
    def descriptor(self) -> int:
        """Of the kernel's socket, where frames may go straight there now; else `NO_DESCRIPTOR`."""

    @property
    def waiting(self) -> int:
        """Bytes that were written and not yet sent."""

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        """Its client has little to say: close on a longer message, and on many that nobody has read.

        Floods of pings, pongs and fragments close any connection."""

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        """After what was written and the frames `last`; abort if the client does not read it."""

    def abort(self) -> None: ...
