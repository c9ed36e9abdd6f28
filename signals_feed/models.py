"""Published signals, their announcements and evidence, and the notes of the watcher."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from core.events.outbox import ControlEvent
from core.times import epoch_ms_after, moment

from .exits import paid_entry
from .record import MOST_FEEDS
from .rules import RULES, Quoted

LIFETIME = timedelta(days=7)
"""To publish signals. A user who loses it can still close their own by hand."""


def default_expiry() -> datetime:
    return timezone.now() + LIFETIME


class SignalQuerySet(models.QuerySet["Signal"]):
    def with_status(self, status: str) -> SignalQuerySet:
        return self if status == "all" else self.filter(status=status)

    def for_instrument(self, instrument_id: int | None) -> SignalQuerySet:
        return self if instrument_id is None else self.filter(instrument_id=instrument_id)

    def by_publisher(self, name: str | None) -> SignalQuerySet:
        return self if name is None else self.filter(user__username=name)

    def closed_between(self, start_ms: int | None, end_ms: int | None) -> SignalQuerySet:
        """From the first moment on and before the last one."""
        found = self
        if start_ms is not None:
            found = found.filter(closed_at__gte=moment(start_ms))
        if end_ms is not None:
            found = found.filter(closed_at__lt=moment(end_ms))
        return found

    def for_feed(self) -> SignalQuerySet:
        return self.order_by("-published_at", "-pk")

    def active(self) -> SignalQuerySet:
        return self.filter(status=Signal.Status.ACTIVE)

    def with_origin(self) -> SignalQuerySet:
        """`is_of_demo`, and `is_late` for what a version before published by its own rules after others had
        begun."""
        begun = RulesBegun.objects.filter(rules__gt=OuterRef("rules"), begun_at__lt=OuterRef("published_at"))
        is_of_demo = Coalesce("is_demo", "user__account__is_demo", False)
        return self.annotate(is_of_demo=is_of_demo, is_late=Q(Exists(begun), is_of_demo=False))


def price_field(**more: Any) -> models.DecimalField[Decimal, Decimal]:
    return models.DecimalField(max_digits=18, decimal_places=8, **more)


class Signal(models.Model):
    """A published trade idea. It is written active, its terms never change, and once closed it never
    reopens: triggers refuse all else (ledger/trigger_rules.py, ledger/guards.py)."""

    class Direction(models.TextChoices):
        BUY = "buy"
        SELL = "sell"

    class Status(models.TextChoices):
        ACTIVE = "active"
        CLOSED = "closed"

    class CloseReason(models.TextChoices):
        """The words of the API, and those of all pages."""

        TAKE_PROFIT = "take_profit", "Target reached"
        STOP_LOSS = "stop_loss", "Stopped out"
        MANUAL = "manual", "Closed by the publisher"
        EXPIRED = "expired", "Expired"
        CANCELLED = "cancelled", "Cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="signals")
    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.PROTECT, related_name="signals")
    direction = models.CharField(max_length=4, choices=Direction)
    entry = price_field()
    stop_loss = price_field()
    take_profit = price_field()
    # What the market offered at publication: results run from the worse of this and the entry.
    tradable_price = price_field()
    status = models.CharField(max_length=6, choices=Status, default=Status.ACTIVE)
    published_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=default_expiry)
    # The same form sent twice is one signal.
    token = models.UUIDField(null=True, blank=True, editable=False)
    cancel_reason = models.CharField(max_length=200, blank=True, help_text="Why it was cancelled.")
    cancelled_at = models.DateTimeField(null=True, blank=True)
    close_price = price_field(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    close_reason = models.CharField(max_length=11, choices=CloseReason, blank=True)
    pnl = models.DecimalField("result in pips", max_digits=14, decimal_places=1, null=True, blank=True)
    pnl_percent = models.DecimalField(
        "result in percent", max_digits=12, decimal_places=4, null=True, blank=True
    )
    pnl_r = models.DecimalField("result in R", max_digits=12, decimal_places=4, null=True, blank=True)
    best_r = models.DecimalField(
        "furthest ahead, in R", max_digits=12, decimal_places=4, null=True, blank=True
    )
    worst_r = models.DecimalField(
        "furthest behind, in R", max_digits=12, decimal_places=4, null=True, blank=True
    )

    # 1: the quote of its publication is its fill. By rules 2 the engine fills it afterwards.
    rules = models.SmallIntegerField(default=1, db_default=1, editable=False)
    # NULL where a version wrote it that does not know the column: then the account says so.
    is_demo = models.BooleanField(null=True, default=False, editable=False)
    fill_price = price_field(null=True, blank=True)
    filled_at = models.DateTimeField(null=True, blank=True)
    rank_unit = price_field(null=True, blank=True)

    objects = SignalQuerySet.as_manager()

    class Meta:
        permissions = (("publish_signal", "Can publish signals and close their own by hand"),)
        indexes = (
            models.Index(fields=("status", "-published_at", "-id"), name="signal_feed"),
            models.Index(fields=("-published_at", "-id"), name="signal_feed_all"),
            models.Index(fields=("instrument", "status", "-published_at", "-id"), name="signal_feed_symbol"),
            models.Index(fields=("user", "-published_at", "-id"), name="signal_feed_user"),
            models.Index(fields=("user", "status", "closed_at", "id"), name="signal_scorecard"),
            models.Index(fields=("closed_at",), name="signal_closed_at", condition=Q(status="closed")),
        )
        constraints = (
            models.UniqueConstraint(name="signal_is_sent_once", fields=("user", "token")),
            models.CheckConstraint(
                name="signal_closed_iff_result",
                condition=Q(
                    status="active",
                    close_price=None,
                    closed_at=None,
                    close_reason="",
                    pnl=None,
                    pnl_percent=None,
                    pnl_r=None,
                )
                # A comparison with NULL is neither true nor false, and a check lets that pass.
                | Q(
                    status="closed",
                    close_price__isnull=False,
                    closed_at__isnull=False,
                    close_price__gt=0,
                    closed_at__gte=F("published_at"),
                    close_reason__in=("take_profit", "stop_loss", "manual", "expired", "cancelled"),
                    pnl__isnull=False,
                    pnl_percent__isnull=False,
                    pnl_r__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="signal_levels_are_on_their_sides",
                condition=Q(direction="buy", stop_loss__lt=F("entry"), take_profit__gt=F("entry"))
                | Q(direction="sell", stop_loss__gt=F("entry"), take_profit__lt=F("entry")),
            ),
            models.CheckConstraint(
                name="signal_prices_are_positive",
                condition=Q(entry__gt=0, stop_loss__gt=0, take_profit__gt=0, tradable_price__gt=0),
            ),
            models.CheckConstraint(
                name="signal_cancelled_has_reason", condition=~Q(close_reason="cancelled", cancel_reason="")
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_direction_display()} {self.instrument} at {self.entry:,.{self.instrument.digits}f}"

    @property
    def paid(self) -> Decimal | None:
        """None until it is filled; a signal that ends unfilled keeps it."""
        tradable = self.fill_price if self.rules > 1 else self.tradable_price
        return None if tradable is None else paid_entry(self.direction, self.entry, tradable)

    @property
    def waits_for_fill(self) -> bool:
        return self.paid is None and self.closed_at is None

    @property
    def is_unfilled(self) -> bool:
        """It ended without a fill, and so without a result."""
        return self.paid is None and self.closed_at is not None

    def entry_quote(self) -> Quoted | None:
        """The quote it was published at; None for a signal older than this record."""
        entry = Evidence.objects.filter(signal=self, kind=Evidence.Kind.ENTRY).first()
        return None if entry is None else entry.quote


class AnnouncementQuerySet(models.QuerySet["Announcement"]):
    def last_position(self) -> int:
        return self.aggregate(last=models.Max("position"))["last"] or 0

    def position_of(self, signal_id: uuid.UUID, kind: str, since: datetime) -> int | None:
        """Where a signal was published or closed; None if that was before `since`, or it is unknown."""
        at = "signal__closed_at" if kind == Announcement.Kind.CLOSED else "signal__published_at"
        announced = self.filter(signal=signal_id, kind=kind, **{f"{at}__gte": since})
        return announced.values_list("position", flat=True).first()

    def can_replay_after(self, position: int, since: datetime) -> bool:
        """Whether the position was ever reached and everything announced after it is of `since` or later."""
        columns = ("kind", "signal__published_at", "signal__closed_at")
        if ControlEvent.objects.is_lost(position):
            return False
        first = self.filter(position__gt=position).order_by("position").values_list(*columns).first()
        if first is None:
            # A restored database may end before it.
            return position <= self.last_position()
        kind, published_at, closed_at = first
        at: datetime = closed_at if kind == Announcement.Kind.CLOSED else published_at
        return at >= since


class Announcement(models.Model):
    """The stream's announcement about a signal, at its position in commit order. It has a table of its own,
    so that what is replayed for days does not depend on how long control events are kept."""

    class Kind(models.TextChoices):
        PUBLISHED = "published"
        CLOSED = "closed"

    position = models.BigIntegerField(primary_key=True, help_text="That of its control event.")
    signal = models.ForeignKey(Signal, on_delete=models.CASCADE, related_name="announcements")
    kind = models.CharField(max_length=9, choices=Kind)

    objects = AnnouncementQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(name="signal_is_announced_once", fields=("signal", "kind")),
            models.CheckConstraint(
                name="announcement_kind_is_known", condition=Q(kind__in=("published", "closed"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"


class Evidence(models.Model):
    """Written with the fact that it proves; triggers refuse to change it (trigger_rules.py)."""

    class Kind(models.TextChoices):
        ENTRY = "entry"
        FILL = "fill"
        EXIT = "exit"

    class Source(models.TextChoices):
        TICK = "tick"
        CANDLE = "candle", "a stored minute"
        FIRST_AFTER_GAP = "first_after_gap", "the first tick after a gap"

    signal = models.ForeignKey("signals_feed.Signal", on_delete=models.CASCADE, related_name="evidence")
    kind = models.CharField(max_length=5, choices=Kind)
    source = models.CharField(max_length=15, choices=Source)
    rule = models.CharField(max_length=13, help_text="One of those in rules.py.")
    at = models.DateTimeField(help_text="The tick's own time, or the open of the minute.")
    bid = price_field(null=True, blank=True)
    ask = price_field(null=True, blank=True)
    # The tick's number in its stream; 0 if unknown.
    epoch = models.CharField(max_length=32, blank=True)
    seq = models.PositiveBigIntegerField(default=0)
    bid_open = price_field(null=True, blank=True)
    bid_low = price_field(null=True, blank=True)
    bid_high = price_field(null=True, blank=True)
    ask_low = price_field(null=True, blank=True)
    ask_high = price_field(null=True, blank=True)
    # At exit: how far the exit side went for the publisher and against while the signal was active.
    best = price_field(null=True, blank=True)
    worst = price_field(null=True, blank=True)
    # Of ticks, as exits.py says; unknown by rules 1.
    feed = models.CharField(max_length=MOST_FEEDS, blank=True, default="", db_default="")
    simulated = models.BooleanField(null=True)
    accepted_ms = models.BigIntegerField(null=True)
    settled = models.BooleanField(null=True)
    unsettled_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="evidence_is_given_once", fields=("signal", "kind")),
            models.CheckConstraint(
                name="evidence_is_tick_or_candle",
                condition=Q(source="candle", kind="exit", bid=None, ask=None)
                & (Q(bid_low__isnull=False) | Q(ask_high__isnull=False))
                | Q(
                    source__in=("tick", "first_after_gap"),
                    bid__isnull=False,
                    ask__isnull=False,
                    bid_low=None,
                    ask_high=None,
                    ask__gte=F("bid"),
                ),
            ),
            models.CheckConstraint(name="evidence_rule_is_known", condition=Q(rule__in=list(RULES))),
            models.CheckConstraint(
                name="evidence_kind_is_known", condition=Q(kind__in=("entry", "fill", "exit"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.signal_id} by {self.source}"

    @property
    def quote(self) -> Quoted | None:
        """None if it is a minute."""
        if self.bid is None or self.ask is None:
            return None
        return Quoted(self.bid, self.ask, epoch_ms_after(self.at), self.epoch, self.seq)


class Hit(models.Model):
    """A tick that closes a signal. It is in the database no later than the tick itself, so that the next
    engine closes the signal by the same tick and at the same price."""

    signal = models.OneToOneField(
        "signals_feed.Signal", on_delete=models.CASCADE, primary_key=True, related_name="hit"
    )
    closing = models.JSONField()

    def __str__(self) -> str:
        return f"{self.signal_id} is hit"


class Undelivered(models.Model):
    """What the engine decided of a signal by rules 2, no later in the database than the ticks it follows
    from, until it is written. A version that does not know these rules leaves it alone."""

    # The version before removes signals of the demo without knowing of this table.
    signal = models.OneToOneField(
        "signals_feed.Signal",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="undelivered",
        db_constraint=False,
    )
    decision = models.JSONField()

    def __str__(self) -> str:
        return f"{self.signal_id} is decided"


class Reached(models.Model):
    """How far the exit side went since the fill of an active signal by rules 2, and whose prices judged it,
    up to the last checkpoint."""

    # The version before removes signals of the demo without knowing of this table.
    signal = models.OneToOneField(
        "signals_feed.Signal",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="reached",
        db_constraint=False,
    )
    high = price_field()
    low = price_field()
    others = models.CharField(max_length=MOST_FEEDS, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.signal_id} saw {self.low} to {self.high}"


class WatchMark(models.Model):
    """The time up to which the stored prices have been judged. One row."""

    watched_until = models.DateTimeField()
    followed = models.CharField(max_length=60, default="", db_default="")
    """Where the engine's journal stood at the last checkpoint of an engine that follows rules 2."""

    class Meta:
        constraints = (models.CheckConstraint(name="watch_mark_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return f"watched until {self.watched_until:%Y-%m-%d %H:%M}"


class RulesBegun(models.Model):
    """The rules by which new signals are published, once every process that runs knows them."""

    rules = models.SmallIntegerField(primary_key=True)
    begun_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"rules {self.rules} since {self.begun_at:%Y-%m-%d %H:%M}"
