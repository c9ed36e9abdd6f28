"""Control events: facts that every process must hear of, in commit order."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Q
from django.utils import timezone

from .channel import EventMessage, nudge, tell
from .kinds import ENDS_ACCESS, EventKind

# Any number will do, as long as nothing else in the database takes this advisory lock.
COMMIT_ORDER_LOCK = 7_424_001


class ControlEventManager(models.Manager["ControlEvent"]):
    def publish(self, kind: EventKind, *, by: str = "", **facts: Any) -> ControlEvent:
        """Write an event in the transaction of its fact, as the last act of that transaction."""
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("A control event is published inside a transaction.")
        if connection.vendor == "postgresql":
            # A sequence numbers rows as they are written, not as they commit. Writers take turns
            # until they commit, so a reader never passes a position that is still to appear. Who locks
            # rows after this can meet a writer that holds them and waits here: a deadlock.
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [COMMIT_ORDER_LOCK])
        event = self.create(kind=kind, by=by, facts=facts, account_id=facts.get("account"))
        if not any(entry[1] is nudge for entry in connection.run_on_commit):
            transaction.on_commit(nudge)
        if kind in ENDS_ACCESS:
            transaction.on_commit(partial(tell, EventMessage(event.position, kind, facts)))
        return event

    def newest(self) -> ControlEvent | None:
        return self.order_by("position").last()


class ControlEvent(models.Model):
    """One row of the outbox, read by position in every process."""

    position = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=40)
    facts = models.JSONField(default=dict)
    # No foreign key: what happened outlives the account.
    account_id = models.BigIntegerField(null=True, editable=False)
    by = models.CharField(max_length=150, blank=True, help_text="Who did it.")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects = ControlEventManager()

    class Meta:
        app_label = "accounts"
        ordering = ("-position",)
        indexes = (
            models.Index(
                name="events_of_account",
                fields=("account_id", "-position"),
                condition=Q(account_id__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"

    def is_same_as(self, other: ControlEvent) -> bool:
        """Whether this is the same event, and not another one at its position."""
        return (self.position, self.kind, self.created_at) == (other.position, other.kind, other.created_at)
