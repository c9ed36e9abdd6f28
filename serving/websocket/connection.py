"""What a hub asks of a connection, and how a frame begins."""

from collections.abc import Callable, Iterator
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
    """Called instead when the server is shut down. It must close the connection soon."""

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


# WebSocket frames as a server sends them: never masked, so that all clients get the same bytes.
TEXT = 0x81
MEDIUM, LONG = 126, 127
_HEADERS = tuple(bytes((TEXT, size)) for size in range(MEDIUM))


def frame(payload: bytes) -> bytes:
    """A whole text message in one frame."""
    size = len(payload)
    if size < MEDIUM:
        return _HEADERS[size] + payload
    if size < 1 << 16:
        return bytes((TEXT, MEDIUM)) + size.to_bytes(2, "big") + payload
    return bytes((TEXT, LONG)) + size.to_bytes(8, "big") + payload


def payloads(frames: bytes) -> Iterator[bytes]:
    """Take apart what `frame` made."""
    at = 0
    while at < len(frames):
        start, end = _payload_of(frames, at)
        yield frames[start:end]
        at = end


def count(frames: bytes) -> int:
    number = at = 0
    while at < len(frames):
        number, at = number + 1, _payload_of(frames, at)[1]
    return number


def _payload_of(frames: bytes, at: int) -> tuple[int, int]:
    size, start = frames[at + 1], at + 2
    if size >= MEDIUM:
        width = 2 if size == MEDIUM else 8
        size, start = int.from_bytes(frames[start : start + width], "big"), start + width
    return start, start + size
