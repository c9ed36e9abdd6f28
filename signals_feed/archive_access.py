"""What the archive, a room above, has of the ledger's signals and days."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .exits import Tick
from .record import Payload

TicksOf = Callable[[Payload, int, int], Sequence[Tick] | None]
"""Those of the instrument of a `publish` that were accepted from one time up to another, by which engines
number them; None if not all of them are archived."""
DigestOf = Callable[[str], str]
"""The SHA-256 of a day's manifest, empty if there is none, as after retention."""


def nothing_archived(publish: Payload, since_ms: int, until_ms: int) -> Sequence[Tick] | None:
    return None


def no_manifest(day: str) -> str:
    return ""


class Archived:
    """Until an archive is registered, nothing is archived. To open or read one that is away is an OSError."""

    def __init__(self) -> None:
        self._ticks: Callable[[], TicksOf] = lambda: nothing_archived
        self._digests: Callable[[], DigestOf] = lambda: no_manifest

    def register(self, ticks: Callable[[], TicksOf], digests: Callable[[], DigestOf]) -> None:
        """How each is opened."""
        self._ticks, self._digests = ticks, digests

    def open_ticks(self) -> TicksOf:
        return self._ticks()

    def open_digests(self) -> DigestOf:
        return self._digests()


archived = Archived()
