"""What the market did: candles, and the last quote of each instrument."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from .prices.timeframes import TIMEFRAMES


class Bar(models.Model):
    """The prices of an interval."""

    opened_at = models.DateTimeField()
    open = models.DecimalField(max_digits=18, decimal_places=8)
    high = models.DecimalField(max_digits=18, decimal_places=8)
    low = models.DecimalField(max_digits=18, decimal_places=8)
    close = models.DecimalField(max_digits=18, decimal_places=8)
    volume = models.DecimalField(max_digits=24, decimal_places=8)
    # The ask's extremes: a sell gets out on the ask, so its signal is judged by them.
    ask_high = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    ask_low = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)

    class Meta:
        abstract = True
        constraints = (
            models.CheckConstraint(
                name="%(class)s_high_is_highest",
                condition=Q(high__gte=F("open")) & Q(high__gte=F("close")) & Q(high__gte=F("low")),
            ),
            models.CheckConstraint(
                name="%(class)s_low_is_lowest",
                condition=Q(low__lte=F("open")) & Q(low__lte=F("close")) & Q(low__gt=0),
            ),
            models.CheckConstraint(name="%(class)s_volume_is_not_negative", condition=Q(volume__gte=0)),
            # A comparison with NULL is neither true nor false, and a check lets that pass.
            models.CheckConstraint(
                name="%(class)s_ask_extremes_are_ordered",
                condition=Q(ask_high__isnull=True, ask_low__isnull=True)
                | Q(ask_high__isnull=False, ask_low__isnull=False, ask_high__gte=F("ask_low"), ask_low__gt=0),
            ),
        )


class Candle(Bar):
    """A closed candle. Every interval is the aggregate of its 1m candles."""

    class Basis(models.TextChoices):
        BID = "bid"
        MID = "mid"
        TRADES = "trades", "a venue's trade prices"
        DEMO = "demo", "the simulated market"

    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.CASCADE, related_name="candles")
    timeframe = models.CharField(max_length=3, choices=[(name, name) for name in TIMEFRAMES])
    basis = models.CharField(max_length=6, choices=Basis, default=Basis.BID)

    class Meta:
        ordering = ("-opened_at",)
        constraints = (
            models.UniqueConstraint(fields=("instrument", "timeframe", "opened_at"), name="candle_is_unique"),
            *Bar._meta.constraints,
            models.CheckConstraint(
                name="candle_timeframe_is_known", condition=Q(timeframe__in=list(TIMEFRAMES))
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.timeframe} {self.opened_at:%Y-%m-%d %H:%M}"


class FormingMinute(Bar):
    """The checkpoint of an instrument's forming 1m candle, so that a restart goes on with it."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="forming_minute"
    )

    class Meta(Bar.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.opened_at:%Y-%m-%d %H:%M}"


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
