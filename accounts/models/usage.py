"""What accounts used, by minute and by day, for people to look at. Limits are counted elsewhere, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter

from django.db import connection, models, transaction

from core.times import moment

from .accounts import Account


class AiUsage(models.Model):
    """AI calls that an account made on one UTC day."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="ai_usage")
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = verbose_name_plural = "AI usage"
        constraints = (models.UniqueConstraint(fields=("account", "day"), name="ai_usage_one_row_a_day"),)

    def __str__(self) -> str:
        return f"{self.used} on {self.day}"


class VisitorAiUsage(models.Model):
    """AI calls of all visitors from one network on one UTC day. Their accounts come and go with cookies."""

    network = models.CharField(max_length=43)
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("network", "day"), name="visitor_ai_usage_one_row_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.used} on {self.day}"


MINUTE_S, DAY_S = 60, 86_400


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """What was used in a while."""

    requests: int = 0
    streams: int = 0

    def more(self, other: UsageCounts) -> UsageCounts:
        return UsageCounts(self.requests + other.requests, self.streams + other.streams)


MINUTES_KEPT = timedelta(days=2)
DAYS_KEPT = timedelta(days=400)
Minute = tuple[int, int]
"""An account, and the epoch second in which its minute began."""


class UsageManager(models.Manager["Usage"]):
    @transaction.atomic
    def add(self, counts: Mapping[Minute, UsageCounts]) -> None:
        """Add to what other processes have counted in the same minutes and days."""
        # An account may have gone since: then nobody asks what it used.
        accounts = Account.objects.filter(pk__in={account for account, _ in counts})
        known = set(accounts.values_list("pk", flat=True))
        rows: dict[tuple[str, int, int], UsageCounts] = {}
        for (account, at), used in counts.items():
            if account in known:
                for row in (("minute", account, at), ("day", account, at // DAY_S * DAY_S)):
                    rows[row] = rows.get(row, UsageCounts()).more(used)
        if not rows:
            return
        adapt, table = connection.ops.adapt_datetimefield_value, self.model._meta.db_table
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} (span, account_id, starts_at, requests, streams)"  # noqa: S608 - our own name
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (account_id, span, starts_at) DO UPDATE"
                f" SET requests = {table}.requests + excluded.requests,"
                f" streams = {table}.streams + excluded.streams",
                # Sorted, so that two processes never wait for each other in a circle.
                [
                    (span, account, adapt(moment(1000 * at)), used.requests, used.streams)
                    for (span, account, at), used in sorted(rows.items(), key=itemgetter(0))
                ],
            )

    def prune(self, now: datetime) -> None:
        self.filter(span="minute", starts_at__lt=now - MINUTES_KEPT).delete()
        self.filter(span="day", starts_at__lt=now - DAYS_KEPT).delete()


class Usage(models.Model):
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="usage", db_index=False)
    span = models.CharField(max_length=6, choices=[("minute", "minute"), ("day", "day")])
    starts_at = models.DateTimeField()
    requests = models.PositiveIntegerField(default=0)
    streams = models.PositiveIntegerField(default=0, help_text="Streams that were opened.")

    objects = UsageManager()

    class Meta:
        verbose_name_plural = "usage"
        constraints = (
            models.UniqueConstraint(fields=("account", "span", "starts_at"), name="usage_one_row_a_span"),
        )
        indexes = (models.Index(fields=("span", "starts_at"), name="usage_by_age"),)

    def __str__(self) -> str:
        return f"{self.requests} requests in the {self.span} of {self.starts_at}"
