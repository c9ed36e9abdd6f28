"""Curated news, and every score that an item was ever given."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from news.digests import digest
from news.labels import sentiment_label


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
