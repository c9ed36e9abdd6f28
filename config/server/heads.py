"""How much of what came belongs to the head of one request, and whether that is too much.

Where a message ends is for the parser alone to say: what is counted here frames nothing."""

from __future__ import annotations

END = b"\r\n\r\n"
MOST_BYTES = 32 * 1024
MOST_HEADERS = 100


class Head:
    """Of the request that is being read. A part of it may be parsed before the rest is there."""

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
        at = seen.find(END)
        size = len(data) if at < 0 else at + len(END) - kept
        # With the first end of a head that was a blank line in front of it, the rest is still to come.
        self._tail = seen[-3:] if at < 0 else b""
        self.size += size
        self.has_line = self.has_line or b"\n" in data[: max(0, MOST_BYTES - self.size + size)]
        return size

    @property
    def is_too_long(self) -> bool:
        return self.size > MOST_BYTES


def is_one_head(data: bytes) -> bool:
    """A whole head and nothing else, as nearly every request comes."""
    return 0 <= data.find(END) == len(data) - len(END) <= MOST_BYTES - len(END)
