"""Whether the source of the ticks was alive during a minute. Pure: times are passed in."""

from __future__ import annotations

# Silence for longer than this is no quiet market but a lost source.
SILENT_MS = 60_000


class Source:
    def __init__(self) -> None:
        self._since_ms: int | None = None
        self._heard_ms = 0

    def heard(self, at_ms: int) -> None:
        """A batch came; an empty one is a sign of life too."""
        if self._since_ms is None or at_ms - self._heard_ms > SILENT_MS:
            self._since_ms = at_ms
        self._heard_ms = at_ms

    def lost(self) -> None:
        self._since_ms = None

    def was_alive(self, start_ms: int, end_ms: int) -> bool:
        """From start to end without a break."""
        return (
            self._since_ms is not None and self._since_ms <= start_ms and end_ms - self._heard_ms <= SILENT_MS
        )
