"""News: sources, items, scores, and how prices moved afterwards."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from core.events.outbox import ControlEvent
from news.addresses import LONGEST, AddressRefused, digest, read_feed_address
from news.labels import sentiment_label


# The stream's announcements of news, in the order in which items entered the feed.
class NewsAnnouncementQuerySet(models.QuerySet["NewsAnnouncement"]):
    def last_position(self) -> int:
        return self.aggregate(last=models.Max("position"))["last"] or 0

    def position_of(self, item_id: int, since: datetime) -> int | None:
        """Where an item was announced; None if that was before `since`, or never."""
        announced = self.filter(item=item_id, announced_at__gte=since)
        return announced.values_list("position", flat=True).first()

    def can_replay_after(self, position: int, since: datetime) -> bool:
        """Whether the position was ever reached and everything announced after it is of `since` or later."""
        if ControlEvent.objects.is_lost(position):
            return False
        later = self.filter(position__gt=position).order_by("position")
        first_at = later.values_list("announced_at", flat=True).first()
        # A restored database may end before it.
        return position <= self.last_position() if first_at is None else first_at >= since


class NewsAnnouncement(models.Model):
    """That an item entered the feed, at its position in commit order. The row stays as long as the item, so
    that one which staff take back and publish again is not announced twice."""

    position = models.BigIntegerField(primary_key=True, help_text="That of its control event.")
    # Without a constraint, so that a version that does not know this table can still delete items.
    item = models.OneToOneField(
        "news.NewsItem", on_delete=models.CASCADE, db_constraint=False, related_name="announcement"
    )
    announced_at = models.DateTimeField(default=timezone.now)

    objects = NewsAnnouncementQuerySet.as_manager()

    class Meta:
        app_label = "news"

    def __str__(self) -> str:
        return f"{self.position} of {self.item_id}"


# Curated news, and every score that an item was ever given.
class NewsQuerySet(models.QuerySet["NewsItem"]):
    def published(self) -> NewsQuerySet:
        return self.filter(status=NewsItem.Status.PUBLISHED)

    def for_feed(self) -> NewsQuerySet:
        return self.published().order_by("-published_at", "-pk")


class NewsCategory(models.TextChoices):
    FOREX = "forex"
    GOLD = "gold"
    CRYPTO = "crypto"
    MACRO = "macro"


class NewsItem(models.Model):
    """One piece of news. Drafts wait for staff; a published item always has a score."""

    Category = NewsCategory

    class Status(models.TextChoices):
        DRAFT = "draft"
        PUBLISHED = "published"
        REJECTED = "rejected"

    title = models.CharField(max_length=300)
    summary = models.TextField(blank=True)
    url = models.URLField("URL", max_length=500, blank=True)
    source = models.CharField(max_length=80, blank=True)
    category = models.CharField(max_length=6, choices=Category)
    symbols = models.ManyToManyField("instruments.Instrument", blank=True, related_name="news")
    status = models.CharField(max_length=9, choices=Status, default=Status.DRAFT)
    sentiment_score = models.FloatField(null=True, blank=True, help_text="From −1 (bearish) to 1 (bullish).")
    model = models.CharField(
        max_length=60, blank=True, help_text="What scored it: a model, or “staff” after an override."
    )
    published_at = models.DateTimeField(default=timezone.now)
    is_demo = models.BooleanField("demo", default=False, editable=False)

    # The ingest recognises known stories by these; they are empty for what staff wrote.
    origin = models.ForeignKey(
        "news.Source", on_delete=models.SET_NULL, null=True, editable=False, related_name="items"
    )
    guid_key = models.CharField(max_length=64, blank=True, editable=False)
    address_key = models.CharField(max_length=64, blank=True, editable=False)
    title_key = models.CharField(max_length=64, blank=True, editable=False)
    arrived_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = NewsQuerySet.as_manager()

    class Meta:
        verbose_name = "news item"
        ordering = ("-published_at", "-pk")
        indexes = (
            models.Index(fields=("status", "-published_at", "-id"), name="news_feed"),
            models.Index(fields=("status", "category", "-published_at", "-id"), name="news_feed_category"),
            models.Index(fields=("address_key",), condition=~Q(address_key=""), name="news_address"),
        )
        constraints = (
            models.CheckConstraint(
                name="news_score_is_within_one",
                condition=Q(sentiment_score=None) | Q(sentiment_score__gte=-1, sentiment_score__lte=1),
            ),
            models.CheckConstraint(
                name="news_published_is_scored",
                condition=~Q(status="published") | (Q(sentiment_score__isnull=False) & ~Q(model="")),
            ),
            models.CheckConstraint(name="news_has_title", condition=~Q(title="")),
            models.UniqueConstraint(
                fields=("origin", "guid_key"), condition=~Q(guid_key=""), name="news_guid_once_a_source"
            ),
        )

    def __str__(self) -> str:
        return self.title

    @property
    def mark(self) -> str:
        """Changes whenever anything changes that staff read before they decide."""
        read = (self.title, self.summary, self.category, self.sentiment_score, self.model)
        return digest(repr(read))[:16]

    @property
    def sentiment(self) -> str:
        return "" if self.sentiment_score is None else sentiment_label(self.sentiment_score)


class ItemScore(models.Model):
    """One score of one title. Rows are added and never changed, which the database enforces."""

    item = models.ForeignKey("news.NewsItem", on_delete=models.CASCADE, related_name="scores")
    title = models.CharField(max_length=300, help_text="As it read when it was scored.")
    score = models.FloatField()
    model = models.CharField(max_length=60)
    version = models.CharField(max_length=40, blank=True)
    by = models.CharField(max_length=150, blank=True, help_text="Who asked for it; empty for the ingest.")
    is_taken = models.BooleanField(
        "taken", default=True, help_text="Whether the item took it; published items keep theirs."
    )
    scored_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "score"
        ordering = ("-scored_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="news_item_score_is_within_one", condition=Q(score__gte=-1, score__lte=1)
            ),
            models.CheckConstraint(name="news_item_score_has_model", condition=~Q(model="")),
        )

    def __str__(self) -> str:
        return f"{self.score:+.2f} by {self.model}"


# How often language models were called: calls cost money, so the count outlives the process.
class LanguageUse(models.Model):
    """Calls of one language model on one UTC day, over all processes."""

    identifier = models.CharField(max_length=60)
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        app_label = "news"
        verbose_name_plural = "language use"
        constraints = (
            models.UniqueConstraint(fields=("identifier", "day"), name="language_use_one_row_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.identifier}: {self.used} on {self.day}"


# The score of an item when it entered the feed, and how prices moved afterwards.
HORIZONS_H = {"1h": 1, "24h": 24}
INVERSE = "-"
"""Prefix of a symbol whose quote currency the score is about, such as the yen in USDJPY."""


class OutcomeQuerySet(models.QuerySet["Outcome"]):
    def due(self, now: datetime) -> OutcomeQuerySet:
        return self.filter(settled_at=None, due_at__lte=now).order_by("pk")


class Outcome(models.Model):
    """Made when an item first enters the feed, with the score of that moment, and settled after the horizon.
    A later score, when the move is known, does not change what is judged."""

    item = models.ForeignKey("news.NewsItem", on_delete=models.CASCADE, related_name="outcomes")
    horizon = models.CharField(max_length=3, choices=[(name, name) for name in HORIZONS_H])
    category = models.CharField(max_length=6, choices=NewsCategory)
    score = models.FloatField()
    label = models.CharField(max_length=7)
    symbols = models.CharField(
        max_length=200, help_text="What is looked at, with spaces between; -USDJPY where the inverse is."
    )
    entered_at = models.DateTimeField()
    due_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    move_percent = models.FloatField(null=True, help_text="Empty where there was no price at either end.")

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        indexes = (models.Index(fields=("due_at",), condition=Q(settled_at=None), name="news_outcome_due"),)
        constraints = (
            models.UniqueConstraint(fields=("item", "horizon"), name="news_outcome_once"),
            models.CheckConstraint(
                name="news_outcome_not_before_due",
                condition=Q(settled_at=None, move_percent=None) | Q(settled_at__gte=models.F("due_at")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.label} after {self.horizon}: {self.move_percent}"


# Where news comes from.
# A server that fails once may be restarting.
FAILS_FROM = 2

# A source that has been due for this long is not being polled.
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
