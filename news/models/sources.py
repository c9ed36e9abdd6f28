"""Where news comes from."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from news.addresses import LONGEST, AddressRefused, read_feed_address

from .items import NewsCategory

# A server that fails once may be restarting.
FAILS_FROM = 2

# Due for so long, nobody polls it.
OVERDUE = timedelta(minutes=10)
SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S = 60, 86_400


def is_a_feed_address(address: str) -> None:
    try:
        read_feed_address(address)
    except AddressRefused as error:
        raise ValidationError(f"{str(error).capitalize()}.") from None


class SourceQuerySet(models.QuerySet["Source"]):
    def due(self, now: datetime) -> SourceQuerySet:
        return self.filter(is_active=True, next_poll_at__lte=now).order_by("next_poll_at", "pk")

    def share_in_order(self) -> float | None:
        """How many of those that are polled could be read lately, as a share of 1."""
        polled = self.filter(is_active=True)
        fails = Q(failures__gte=FAILS_FROM) | Q(next_poll_at__lt=timezone.now() - OVERDUE)
        found = polled.aggregate(all=models.Count("pk"), failing=models.Count("pk", filter=fails))
        return 1 - found["failing"] / found["all"] if found["all"] else None


class Source(models.Model):
    """A feed that is polled regularly. Staff do not edit the fields that polling writes."""

    class Trust(models.TextChoices):
        REVIEW = "review", "staff publish"
        PUBLISH = "publish", "publishes by itself"

    class Language(models.TextChoices):
        ENGLISH = "en", "English"
        OTHER = "other", "another: staff score it"

    name = models.CharField(max_length=80, unique=True)
    address = models.CharField(max_length=LONGEST, unique=True, validators=(is_a_feed_address,))
    category = models.CharField(
        max_length=6, choices=NewsCategory, blank=True, help_text="For items whose title does not reveal it."
    )
    language = models.CharField(max_length=5, choices=Language, default=Language.ENGLISH)
    trust = models.CharField(max_length=7, choices=Trust, default=Trust.REVIEW)
    interval_s = models.PositiveIntegerField(
        "interval (seconds)",
        default=300,
        validators=(MinValueValidator(SHORTEST_INTERVAL_S), MaxValueValidator(LONGEST_INTERVAL_S)),
    )
    is_active = models.BooleanField("active", default=True)
    is_demo = models.BooleanField("demo", default=False, editable=False)

    etag = models.CharField(max_length=300, blank=True, editable=False)
    modified = models.CharField(max_length=300, blank=True, editable=False)
    polled_at = models.DateTimeField("last polled", null=True, blank=True, editable=False)
    # This is also the claim: the process that moves it forward polls the source.
    next_poll_at = models.DateTimeField("next poll", default=timezone.now, editable=False)
    failures = models.PositiveIntegerField("failures in a row", default=0, editable=False)
    last_error = models.CharField(max_length=300, blank=True, editable=False)
    outcome = models.CharField("last outcome", max_length=200, blank=True, editable=False)

    objects = SourceQuerySet.as_manager()

    class Meta:
        ordering = ("name",)
        indexes = (models.Index(fields=("is_active", "next_poll_at"), name="news_source_due"),)
        constraints = (
            models.CheckConstraint(
                name="news_source_interval_is_bounded",
                condition=Q(interval_s__gte=SHORTEST_INTERVAL_S, interval_s__lte=LONGEST_INTERVAL_S),
            ),
        )

    def __str__(self) -> str:
        return self.name
