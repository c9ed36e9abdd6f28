"""Who asked for which tier, why, and what staff said."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

LONGEST = 500


class TierRequestQuerySet(models.QuerySet["TierRequest"]):
    def open(self) -> TierRequestQuerySet:
        return self.filter(state=TierRequest.State.OPEN)


class TierRequest(models.Model):
    class State(models.TextChoices):
        OPEN = "open", "waiting"
        ACCEPTED = "accepted", "accepted"
        DECLINED = "declined", "declined"
        WITHDRAWN = "withdrawn", "withdrawn"

    account = models.ForeignKey("accounts.Account", on_delete=models.CASCADE, related_name="tier_requests")
    wanted = models.ForeignKey("accounts.Tier", on_delete=models.PROTECT, related_name="+")
    why = models.CharField(max_length=LONGEST)
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    asked_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    answer = models.CharField(max_length=LONGEST, blank=True)

    objects: ClassVar[TierRequestQuerySet] = TierRequestQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        app_label = "accounts"
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(
                name="tier_request_one_open", fields=("account",), condition=Q(state="open")
            ),
            models.CheckConstraint(
                name="tier_request_state_is_known",
                condition=Q(state__in=("open", "accepted", "declined", "withdrawn")),
            ),
            models.CheckConstraint(
                name="tier_request_decided_once",
                condition=Q(state="open", decided_at=None) | (~Q(state="open") & ~Q(decided_at=None)),
            ),
            models.CheckConstraint(
                name="tier_request_declined_with_words", condition=~Q(state="declined") | ~Q(answer="")
            ),
        )

    def __str__(self) -> str:
        return f"{self.account}: {self.wanted}"
