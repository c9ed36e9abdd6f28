"""The rows behind the status page and readiness: minutes served, minutes of each component, reports of
processes, incidents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self, TypeVar

from django.core.exceptions import ValidationError
from django.db import connection, models, transaction
from django.db.models import ExpressionWrapper, F, Q
from django.db.models.functions import Now, TruncDate
from django.utils import timezone

from core.version import known_rules
from serving.findings import STOPPED


# What the status page answers for, part by part.
class Component(NamedTuple):
    name: str
    title: str
    measured: str


COMPONENTS = (
    Component("rest", "REST API", "Responses without a fault of ours, while the database is available."),
    Component(
        "market",
        "Price stream",
        "/ws/market: the engine delivers, and no connection ends through a fault of ours.",
    ),
    Component("orderflow", "Order flow stream", "/ws/orderflow: measured like the price stream."),
    Component("candles", "Candle stream", "/ws/candles: measured like the price stream."),
    Component(
        "signals",
        "Signal stream",
        "/ws/signals: the database is available, and no connection ends through a fault of ours.",
    ),
    Component("news", "News stream", "/ws/news: measured like the signal stream."),
    Component("feeds", "Price feeds", "Instruments with fresh prices, among those whose market is open."),
    Component("sources", "News sources", "Sources that could be read, among those that are polled."),
)
NAMES = tuple(component.name for component in COMPONENTS)


# Processes report every few seconds; one that has not reported for this long has ended.
REPORTS_KEPT, REPORTS_EXPECTED = timedelta(minutes=1), timedelta(seconds=15)


M = TypeVar("M", bound=models.Model)


class MinutesQuerySet(models.QuerySet[M]):
    def since(self, at: datetime) -> Self:
        return self.filter(at__gte=at)

    def first_at(self) -> datetime | None:
        return self.order_by("at").values_list("at", flat=True).first()

    def prune(self, before: datetime) -> None:
        """Deletes all but the very first one, from which uptime is counted."""
        first_at = self.first_at()
        if first_at is not None:
            self.filter(at__lt=before, at__gt=first_at).delete()


QUANTILES = ("p50", "p95", "p99", "age_p50", "age_p95", "age_p99")


class MinuteQuerySet(MinutesQuerySet["Minute"]):
    def slowest(self) -> list[tuple[Any, ...]]:
        """Minute by minute, the figures of the slowest process."""
        rows: Any = self.order_by("at").values("at")
        worst = rows.annotate(**{name: models.Max(f"{name}_ms") for name in QUANTILES})
        return list(worst.values_list("at", *QUANTILES))

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
    # Since their own times; the others, since the engine accepted them.
    age_p50_ms = models.IntegerField(null=True)
    age_p95_ms = models.IntegerField(null=True)
    age_p99_ms = models.IntegerField(null=True)

    objects = MinuteQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(name="minute_once_a_process", fields=("at", "process")),)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.process}"


class ComponentMinuteQuerySet(MinutesQuerySet["ComponentMinute"]):
    @transaction.atomic
    def add(self, minutes: Mapping[datetime, Mapping[str, float | None]]) -> None:
        """Add what this process saw to what others saw in the same minutes."""
        adapt, table = connection.ops.adapt_datetimefield_value, self.model._meta.db_table
        names = ", ".join(NAMES)
        added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in NAMES)
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} (at, day, reports, {names}) VALUES (%s, %s, 1{', %s' * len(NAMES)})"  # noqa: S608 - our own names
                f" ON CONFLICT (at) DO UPDATE SET reports = {table}.reports + 1, {added}",
                # Sorted, so that two processes never wait for each other in a circle.
                [
                    (adapt(at), at.date().isoformat(), *(minutes[at].get(name) for name in NAMES))
                    for at in sorted(minutes)
                ],
            )

    def by_day(self) -> list[dict[str, Any]]:
        """How many minutes of each day were written down; and of each component `…_seen`, in how many it was
        judged, and `…_up`, how many of these it worked for."""
        days = self.values("day").order_by("day")
        seen = {f"{name}_seen": models.Count(name) for name in NAMES}
        up = {
            f"{name}_up": models.Sum(
                ExpressionWrapper(F(name) / F("reports"), output_field=models.FloatField())
            )
            for name in NAMES
        }
        rows: Any = days.annotate(minutes=models.Count("pk"), **seen, **up)
        return list(rows)


class ComponentMinute(models.Model):
    """A minute, and of each component the sum of the shares in which processes found it in order."""

    at = models.DateTimeField(unique=True)
    day = models.DateField()
    """That of `at`: SQLite would call back into Python to find it, for each of 130,000 rows."""
    reports = models.PositiveIntegerField(default=1)
    """From how many processes."""
    rest = models.FloatField(null=True)
    market = models.FloatField(null=True)
    orderflow = models.FloatField(null=True)
    candles = models.FloatField(null=True)
    signals = models.FloatField(null=True)
    news = models.FloatField(null=True)
    feeds = models.FloatField(null=True)
    sources = models.FloatField(null=True)

    objects = ComponentMinuteQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} by {self.reports}"


class ProcessReportQuerySet(models.QuerySet["ProcessReport"]):
    def put(self, process: str, ages_s: dict[str, float]) -> None:
        report = ProcessReport(process=process, at=Now(), ages_s=ages_s, rules=known_rules.newest)
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

    def silent_s(self) -> float | None:
        """For how long no process has reported, by the clock of the database. None if none ever did."""
        aged = self.annotate(age=ExpressionWrapper(Now() - F("at"), models.DurationField()))
        age = aged.order_by("-at").values_list("age", flat=True).first()
        return None if age is None else age.total_seconds()

    def running(self) -> int:
        """How many report, on whichever machine, and did not say that this was their last report."""
        reporting = self.filter(at__gt=Now() - REPORTS_EXPECTED)
        return reporting.exclude(ages_s__has_key=STOPPED).count()

    def oldest_rules(self) -> int | None:
        """Those that every process that reports knows. None if none does."""
        running = self.filter(at__gt=Now() - REPORTS_EXPECTED)
        return running.order_by("rules").values_list("rules", flat=True).first()

    def prune(self) -> None:
        self.filter(at__lt=Now() - REPORTS_KEPT).delete()


class ProcessReport(models.Model):
    """What a process last found in order; that it could write this row is one of its findings."""

    process = models.CharField(max_length=16, primary_key=True)
    at = models.DateTimeField()
    ages_s = models.JSONField(default=dict)
    """How long ago each thing was in order."""
    rules = models.SmallIntegerField(default=1, db_default=1)
    """The newest rules of signals that it knows."""

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
        """In the words of the states of components, and of the service."""

        MAINTENANCE = "maintenance", "Maintenance"
        MINOR = "minor", "Degraded"
        MAJOR = "major", "Outage"

    title = models.CharField(max_length=120)
    impact = models.CharField(max_length=11, choices=Impact, default=Impact.MINOR)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="Leave empty while the incident lasts.")

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

    def clean(self) -> None:
        """As the constraint says, but at the field and in words."""
        if self.ended_at and self.started_at and self.ended_at < self.started_at:
            raise ValidationError({"ended_at": "An incident cannot end before it starts."})


class Note(models.Model):
    """What staff knew of an incident at one time."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-at", "-pk")

    def __str__(self) -> str:
        return self.text[:60]
