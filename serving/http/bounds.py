"""How long the head and the body of a request may be, and how much may be parsed at once.

Only the parser decides where a message ends; the counts here are bounds alone.
"""

END_OF_HEAD = b"\r\n\r\n"
MOST_HEAD_BYTES = 32 * 1024
MOST_HEADERS = 100


class RequestHead:
    """The head of the request that is being read. Part of it may be parsed before the rest arrives."""

    __slots__ = ("_tail", "has_line", "size")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.size = 0
        self.has_line = False
        """Whether its first line has ended."""
        self._tail = b""

    def take(self, data: bytes) -> int:
        """Count the part of the data that belongs to it, and say how long that is."""
        kept = len(self._tail)
        seen = self._tail + data
        at = seen.find(END_OF_HEAD)
        size = len(data) if at < 0 else at + len(END_OF_HEAD) - kept
        # After a blank line in front of a head, the head itself is still to come.
        self._tail = seen[-3:] if at < 0 else b""
        self.size += size
        self.has_line = self.has_line or b"\n" in data[: max(0, MOST_HEAD_BYTES - self.size + size)]
        return size

    @property
    def is_too_long(self) -> bool:
        return self.size > MOST_HEAD_BYTES


def is_one_head(data: bytes) -> bool:
    """A whole head and nothing else, like nearly every request."""
    return 0 <= data.find(END_OF_HEAD) == len(data) - len(END_OF_HEAD) <= MOST_HEAD_BYTES - len(END_OF_HEAD)


def first_head(data: bytes) -> bytes:
    """The whole head that it begins with, if it does."""
    at = data.find(END_OF_HEAD)
    return b"" if at < 0 else data[: at + len(END_OF_HEAD)]


KIB = 1024
MOST_BODY_BYTES = 64 * KIB

# More only if the application knows the sender before it reads: until then uvicorn stops at 64 KiB.
MOST_TICK_BYTES = 1024 * KIB
MOST_IMPORT_BYTES = 10 * 1024 * KIB

# A Content-Length of more digits is not taken for a number of bytes.
MOST_DIGITS = 18
TICKS = ("/ingest/ticks", "/ingest/ticks/")

# A small part at a time: behind the end of a chunked body something else may follow.
CHUNKED_PART, PART = 16 * KIB, 64 * KIB

# Bytes for the lengths of chunks, their extensions and trailers; a chunk of one byte takes six.
MOST_FRAMING, MOST_FRAMING_A_BYTE = 32 * KIB, 16


def most_bytes(path: str) -> int:
    if path in TICKS:
        return MOST_TICK_BYTES
    return MOST_IMPORT_BYTES if is_import(path) else MOST_BODY_BYTES


def is_import(path: str) -> bool:
    """Where staff upload files: /admin/instruments/instrument/import/."""
    return path.startswith("/admin/") and path.rstrip("/").endswith("/import")


class RequestBody:
    """The body of the request that is being read."""

    __slots__ = ("_raw", "is_chunked", "most", "received", "size")

    def __init__(self, size: int | None, most: int) -> None:
        self.is_chunked = size is None
        self.size, self.most = size or 0, most
        self.received = 0
        self._raw = 0

    @property
    def missing(self) -> int:
        """Bytes that are still to come, if the length was announced."""
        return self.size - self.received

    @property
    def is_too_long(self) -> bool:
        return max(self.size, self.received) > self.most

    def take(self, data: bytes) -> int:
        """How much of the data may be parsed now."""
        size = min(len(data), CHUNKED_PART if self.is_chunked else min(PART, self.missing))
        self._raw += size
        return size

    @property
    def is_mostly_framing(self) -> bool:
        return self._raw - self.received > MOST_FRAMING + MOST_FRAMING_A_BYTE * self.received
