"""What can be traded, and when."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

from .hours import TradingHours


class TradingCalendar(models.Model):
    """The hours that several instruments share."""

    name = models.SlugField(max_length=40, unique=True)
    timezone = models.CharField(max_length=40, default="UTC", help_text="As in America/New_York.")
    sessions = models.CharField(max_length=200, help_text="24/7 · Mon-Fri 09:30-16:00 · Sun 17:00-Fri 17:00")
    holidays = models.TextField(
        blank=True, help_text="Local dates: 2026-12-25, or 2026-11-27@13:00 for an early close."
    )

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        try:
            self.hours()
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def hours(self) -> TradingHours:
        return TradingHours.parse(self.timezone, self.sessions, self.holidays)


class InstrumentQuerySet(models.QuerySet["Instrument"]):
    def with_hours(self) -> InstrumentQuerySet:
        return self.select_related("calendar").order_by("symbol")


class Instrument(models.Model):
    """One tradable thing with its contract facts."""

    class Type(models.TextChoices):
        FOREX = "forex"
        COMMODITY = "commodity"
        CRYPTO = "crypto"
        INDEX = "index"
        STOCK = "stock"

    class VolumeKind(models.TextChoices):
        TRADED = "traded", "sizes of trades"
        TICKS = "ticks", "number of ticks"

    class OrderFlowSource(models.TextChoices):
        TRADES = "trades", "the taker's side"
        TICK_RULE = "tick_rule", "estimated by the tick rule"

    symbol = models.CharField(
        max_length=20,
        unique=True,
        validators=[
            RegexValidator(r"^[A-Z0-9][A-Z0-9._-]*$", "Upper-case letters, digits, dot, dash and underscore.")
        ],
    )
    name = models.CharField(max_length=80)
    type = models.CharField(max_length=10, choices=Type)
    calendar = models.ForeignKey(TradingCalendar, on_delete=models.PROTECT, related_name="instruments")
    pip_size = models.DecimalField(max_digits=14, decimal_places=8)
    contract_size = models.DecimalField(max_digits=16, decimal_places=4)
    margin_rate = models.DecimalField(max_digits=7, decimal_places=6)
    min_lot = models.DecimalField(max_digits=14, decimal_places=6)
    max_lot = models.DecimalField(max_digits=14, decimal_places=6)
    digits = models.PositiveSmallIntegerField(help_text="Decimals of a price.")
    volume_kind = models.CharField(max_length=6, choices=VolumeKind, default=VolumeKind.TICKS)
    order_flow_source = models.CharField(
        max_length=9, choices=OrderFlowSource, default=OrderFlowSource.TICK_RULE
    )
    stale_after_s = models.PositiveIntegerField(
        default=60, help_text="Seconds without a tick until a quote is stale."
    )
    active = models.BooleanField(default=True)

    objects = InstrumentQuerySet.as_manager()

    class Meta:
        ordering = ("symbol",)
        constraints = (
            models.CheckConstraint(
                name="instrument_symbol_is_upper_case", condition=Q(symbol__regex=r"^[A-Z0-9]")
            ),
            models.CheckConstraint(
                name="instrument_sizes_are_positive",
                condition=Q(pip_size__gt=0, contract_size__gt=0, min_lot__gt=0, stale_after_s__gt=0),
            ),
            models.CheckConstraint(
                name="instrument_lots_are_ordered", condition=Q(max_lot__gte=F("min_lot"))
            ),
            models.CheckConstraint(
                name="instrument_margin_is_a_share", condition=Q(margin_rate__gt=0, margin_rate__lte=1)
            ),
            models.CheckConstraint(name="instrument_digits_fit", condition=Q(digits__lte=8)),
        )

    def __str__(self) -> str:
        return self.symbol
