"""What shows that a price was there: the quote at entry, the tick or the candle at exit."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from .prices import price_field
from .rules import RULES


class Evidence(models.Model):
    """Written with the fact that it proves and never changed: triggers refuse it (refusals.py)."""

    class Kind(models.TextChoices):
        ENTRY = "entry"
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
    # Where the tick stands in its stream; 0 where nobody knows.
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
            models.CheckConstraint(name="evidence_kind_is_known", condition=Q(kind__in=("entry", "exit"))),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.signal_id} by {self.source}"
