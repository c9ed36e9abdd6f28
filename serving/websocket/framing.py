"""WebSocket frames as a server sends them: never masked, so that the same bytes go to everybody."""

from collections.abc import Iterator

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
