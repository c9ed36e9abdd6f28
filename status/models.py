"""The rows behind the status page and readiness: minutes served, reports of processes, incidents."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import ExpressionWrapper, F, Q
from django.db.models.functions import Now, TruncDate
from django.utils import timezone

# Processes report every few seconds; one that has not reported for this long has ended.
REPORTS_KEPT, REPORTS_EXPECTED = timedelta(minutes=1), timedelta(seconds=15)


class MinuteQuerySet(models.QuerySet["Minute"]):
    def since(self, at: datetime) -> MinuteQuerySet:
        return self.filter(at__gte=at)

    def first_at(self) -> datetime | None:
        return self.order_by("at").values_list("at", flat=True).first()

    def prune(self, before: datetime) -> None:
        """Deletes all but the very first one, from which uptime is counted."""
        first_at = self.first_at()
        if first_at is not None:
            self.filter(at__lt=before, at__gt=first_at).delete()

    def slowest(self) -> list[tuple[datetime, int | None, int | None, int | None]]:
        """Minute by minute, the figures of the slowest process."""
        rows = self.order_by("at").values("at")
        worst = rows.annotate(p50=models.Max("p50_ms"), p95=models.Max("p95_ms"), p99=models.Max("p99_ms"))
        return list(worst.values_list("at", "p50", "p95", "p99"))

    def served_by_day(self) -> dict[str, int]:
        """How many minutes of each day at least one process served."""
        days = self.annotate(day=TruncDate("at")).values("day").order_by("day")
        return {
            row["day"].isoformat(): row["n"] for row in days.annotate(n=models.Count("at", distinct=True))
        }


class Minute(models.Model):
    """A minute in which a process served, and how long its ticks took to leave it."""

    at = models.DateTimeField()
    process = models.CharField(max_length=16)
    p50_ms = models.PositiveIntegerField(null=True)
    p95_ms = models.PositiveIntegerField(null=True)
    p99_ms = models.PositiveIntegerField(null=True)

    objects = MinuteQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(name="minute_once_a_process", fields=("at", "process")),)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.process}"


class ProcessReportQuerySet(models.QuerySet["ProcessReport"]):
    def put(self, process: str, ages_s: dict[str, float]) -> None:
        report = ProcessReport(process=process, at=Now(), ages_s=ages_s)
        self.bulk_create(
            [report], update_conflicts=True, unique_fields=["process"], update_fields=["at", "ages_s"]
        )

    def of_others(self, process: str) -> list[dict[str, float]]:
        """How long ago each other process found each thing in order, by the clock of the database."""
        recent = self.exclude(process=process).filter(at__gt=Now() - REPORTS_KEPT)
        aged = recent.annotate(age=ExpressionWrapper(Now() - F("at"), models.DurationField()))
        return [
            {name: age_s + age.total_seconds() for name, age_s in ages_s.items()}
            for ages_s, age in aged.values_list("ages_s", "age")
        ]

    def running(self) -> int:
        """How many report, on whichever machine."""
        return self.filter(at__gt=Now() - REPORTS_EXPECTED).count()

    def prune(self) -> None:
        self.filter(at__lt=Now() - REPORTS_KEPT).delete()


class ProcessReport(models.Model):
    """What a process last found in order; that it could write this row is one of its findings."""

    process = models.CharField(max_length=16, primary_key=True)
    at = models.DateTimeField()
    ages_s = models.JSONField(default=dict)
    """How long ago each thing was in order."""

    objects = ProcessReportQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.process} {self.at:%Y-%m-%d %H:%M:%S}"


class IncidentQuerySet(models.QuerySet["Incident"]):
    def open(self) -> IncidentQuerySet:
        return self.filter(ended_at=None, started_at__lte=timezone.now())

    def newest(self) -> IncidentQuerySet:
        return self.order_by("-started_at", "-pk").prefetch_related("notes")


class Incident(models.Model):
    """Something that users should know: staff write it, and the page and its feed show it."""

    class Impact(models.TextChoices):
        MAINTENANCE = "maintenance", "planned maintenance"
        MINOR = "minor", "some are affected"
        MAJOR = "major", "most are affected"

    title = models.CharField(max_length=120)
    impact = models.CharField(max_length=11, choices=Impact, default=Impact.MINOR)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="Empty while it lasts.")

    objects = IncidentQuerySet.as_manager()

    class Meta:
        ordering = ("-started_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="incident_ends_after_it_begins",
                condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")),
            ),
            models.CheckConstraint(
                name="incident_impact_is_known", condition=Q(impact__in=("maintenance", "minor", "major"))
            ),
        )

    def __str__(self) -> str:
        return self.title


class Note(models.Model):
    """What staff knew of an incident at one time."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-at", "-pk")

    def __str__(self) -> str:
        return self.text[:60]
