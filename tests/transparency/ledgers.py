"""A ledger in memory, as the signer reads it, and the times at which it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from transparency.models import Cosignature, SignedCheckpoint
from transparency.remembered import Remembered
from transparency.signing import Signer

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Texts:
    def __init__(self, count: int) -> None:
        self.all = [f"entry {number}" for number in range(count)]
        self.on_read: Callable[[], object] = int
        """What happens while they are read."""

    def count(self) -> int:
        return len(self.all)

    def texts(self, after: int, upto: int) -> Iterable[str]:
        self.on_read()
        return self.all[after:upto]


def make_signer(ledger: Texts) -> Signer:
    """Of a process that has just started."""
    return Signer(ledger, Remembered())


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def lose_checkpoints(after: int = -1) -> None:
    """As a database that is put back does."""
    take_down_triggers()
    SignedCheckpoint.objects.filter(size__gt=after).delete()
    put_up_triggers()


def lose_cosignatures() -> None:
    take_down_triggers()
    Cosignature.objects.all().delete()
    put_up_triggers()
