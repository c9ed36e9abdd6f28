"""What customers ask of staff, who accept or decline it once."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

LONGEST_REASON = 500


class RequestState(models.TextChoices):
    OPEN = "open", "waiting"
    ACCEPTED = "accepted", "accepted"
    DECLINED = "declined", "declined"
    WITHDRAWN = "withdrawn", "withdrawn"


class RequestQuerySet(models.QuerySet[Any]):
    def open(self) -> Self:
        return self.filter(state=RequestState.OPEN)


class StaffRequest(models.Model):
    State = RequestState

    why = models.CharField(max_length=LONGEST_REASON)
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.OPEN)
    asked_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=LONGEST_REASON, blank=True)

    objects: ClassVar[RequestQuerySet] = RequestQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        abstract = True
        ordering = ("-pk",)

    def decide(self, state: RequestState, *, by: Any, answer: str = "") -> bool:
        """Once: of two who decide at the same moment the second gets False."""
        waiting = type(self).objects.open().filter(pk=self.pk)
        if not waiting.update(state=state, decided_at=timezone.now(), decided_by=by, answer=answer):
            return False
        self.refresh_from_db()
        return True


def request_constraints(name: str) -> tuple[models.BaseConstraint, ...]:
    """Of the table of one kind of request, by whose name each constraint begins."""
    is_open = Q(state="open")
    return (
        models.UniqueConstraint(name=f"{name}_one_open", fields=("account",), condition=is_open),
        models.CheckConstraint(
            name=f"{name}_state_is_known",
            condition=Q(state__in=("open", "accepted", "declined", "withdrawn")),
        ),
        models.CheckConstraint(
            name=f"{name}_decided_once",
            condition=Q(state="open", decided_at=None) | (~is_open & ~Q(decided_at=None)),
        ),
        models.CheckConstraint(
            name=f"{name}_declined_with_words", condition=~Q(state="declined") | ~Q(answer="")
        ),
    )
