"""What the market did: candles, and the last quote of each instrument."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from .prices.timeframes import TIMEFRAMES


class Candle(models.Model):
    """A closed candle. Every interval is the aggregate of its 1m candles."""

    class Basis(models.TextChoices):
        BID = "bid"
        MID = "mid"
        TRADES = "trades", "a venue's trade prices"
        DEMO = "demo", "the simulated market"

    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.CASCADE, related_name="candles")
    timeframe = models.CharField(max_length=3, choices=[(name, name) for name in TIMEFRAMES])
    opened_at = models.DateTimeField()
    open = models.DecimalField(max_digits=18, decimal_places=8)
    high = models.DecimalField(max_digits=18, decimal_places=8)
    low = models.DecimalField(max_digits=18, decimal_places=8)
    close = models.DecimalField(max_digits=18, decimal_places=8)
    volume = models.DecimalField(max_digits=24, decimal_places=8)
    # The ask's extremes: a sell gets out on the ask, so its signal is judged by them.
    ask_high = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    ask_low = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    basis = models.CharField(max_length=6, choices=Basis, default=Basis.BID)

    class Meta:
        ordering = ("-opened_at",)
        constraints = (
            models.UniqueConstraint(fields=("instrument", "timeframe", "opened_at"), name="candle_is_unique"),
            models.CheckConstraint(
                name="candle_high_is_highest",
                condition=Q(high__gte=F("open")) & Q(high__gte=F("close")) & Q(high__gte=F("low")),
            ),
            models.CheckConstraint(
                name="candle_low_is_lowest",
                condition=Q(low__lte=F("open")) & Q(low__lte=F("close")) & Q(low__gt=0),
            ),
            models.CheckConstraint(name="candle_volume_is_not_negative", condition=Q(volume__gte=0)),
            models.CheckConstraint(
                name="candle_ask_extremes_are_ordered",
                condition=Q(ask_high=None, ask_low=None) | Q(ask_high__gte=F("ask_low")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.timeframe} {self.opened_at:%Y-%m-%d %H:%M}"


class LastQuote(models.Model):
    """The checkpoint of an instrument's quote, so that a restart knows it, on a closed market too."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="last_quote"
    )
    bid = models.DecimalField(max_digits=18, decimal_places=8)
    ask = models.DecimalField(max_digits=18, decimal_places=8)
    quoted_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="last_quote_is_not_crossed", condition=Q(bid__gt=0, ask__gte=F("bid"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.bid}/{self.ask}"
