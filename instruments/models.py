"""What can be traded, and when."""

from __future__ import annotations

import re
from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now

from .facts import FEEDS, IMPORTED, default_feed, is_simulated
from .hours import TradingHours

MAX_DIGITS = 8
MIXED = (
    "Simulated prices (demo, replay) never stand in for real ones, nor real ones for them. Without a source "
    "an instrument is priced by the demo where DEMO=1, else by push."
)


def check_source(source: str) -> None:
    if not re.fullmatch(rf"({'|'.join(FEEDS)})(:\S+)?", source):
        names = ", ".join(FEEDS)
        raise ValidationError(f"One of {names}; the venue's own symbol may follow a colon.", code="invalid")


def check_feed(name: str) -> None:
    """As candles name it: without a venue's own symbol."""
    if name == IMPORTED:
        return
    check_source(name)
    if ":" in name and not name.startswith("push:"):
        raise ValidationError("Without a symbol: the whole source is meant.", code="invalid")


class TradingCalendar(models.Model):
    """The hours that several instruments share."""

    name = models.SlugField(max_length=40, unique=True)
    timezone = models.CharField(
        max_length=40, default="UTC", help_text="An IANA name, such as America/New_York."
    )
    sessions = models.CharField(
        max_length=200, help_text="Such as 24/7, Mon-Fri 09:30-16:00 or Sun 17:00-Fri 17:00."
    )
    holidays = models.TextField(
        blank=True, help_text="Local dates, such as 2026-12-25, or 2026-11-27@13:00 for an early close."
    )

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Parses one field at a time, so that an error is shown beside the field that has it."""
        parts = {"timezone": (self.timezone, "24/7", ""), "sessions": ("UTC", self.sessions, "")}
        for field, (timezone, sessions, holidays) in (parts | {"holidays": self._texts()}).items():
            try:
                TradingHours.parse(timezone, sessions, holidays)
            except ValueError as error:
                raise ValidationError({field: str(error)}) from None

    def hours(self) -> TradingHours:
        return TradingHours.parse(*self._texts())

    def _texts(self) -> tuple[str, str, str]:
        return self.timezone, self.sessions, self.holidays


class WithheldSource(models.Model):
    """A source whose terms forbid passing its data on, in any way. The prices that prove what was published
    before stay."""

    name = models.CharField(
        max_length=40,
        unique=True,
        validators=[check_feed],
        help_text="The feed, as candles name it: kraken, binance, oanda, push, push:name, replay or demo; "
        "import stands for candles that came from files.",
    )
    why = models.CharField(max_length=200, help_text="The reason, such as a clause of its terms.")
    since = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Instrument(models.Model):
    """Something that can be traded, with the facts of its contract."""

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
            RegexValidator(
                r"^[A-Z0-9][A-Z0-9._-]*$",
                "Use upper-case letters, digits, dots, dashes and underscores, a letter or a digit first.",
            )
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
    digits = models.PositiveSmallIntegerField(help_text="Decimal places of a price.")
    volume_kind = models.CharField(max_length=6, choices=VolumeKind, default=VolumeKind.TICKS)
    order_flow_source = models.CharField(
        max_length=9, choices=OrderFlowSource, default=OrderFlowSource.TICK_RULE
    )
    stale_after_s = models.PositiveIntegerField(
        "stale after (seconds)",
        default=60,
        help_text="So long without a tick, and the quote counts as stale.",
    )
    outlier_percent = models.DecimalField(
        "outlier (percent)",
        max_digits=5,
        decimal_places=2,
        default=Decimal("0.5"),
        db_default=Decimal("0.5"),
        help_text="A price that is further from the last one than this, 50 usual spreads and 15 usual "
        "one-minute ranges is refused, until three in a row agree. 0 refuses none.",
    )
    source = models.CharField(
        max_length=40,
        blank=True,
        validators=[check_source],
        help_text="The feed that prices it: kraken, or kraken:BTC/USD if the venue uses another name. "
        "Empty: the demo market or, without the demo, whoever pushes ticks.",
    )
    fallback = models.CharField(
        max_length=40,
        blank=True,
        validators=[check_source],
        help_text="The feed that takes over while the source is stalled.",
    )
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ("symbol",)
        constraints = (
            models.CheckConstraint(
                name="instrument_symbol_is_upper_case",
                condition=Q(symbol__regex=r"^[A-Z0-9][A-Z0-9._-]*\Z"),
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
            models.CheckConstraint(
                name="instrument_outlier_percent_is_not_negative", condition=Q(outlier_percent__gte=0)
            ),
            models.CheckConstraint(name="instrument_digits_fit", condition=Q(digits__lte=MAX_DIGITS)),
        )

    def __str__(self) -> str:
        return self.symbol

    def clean(self) -> None:
        """The constraints again, because the database does not say which field it refuses."""
        wrong = {
            name: "Must be above 0."
            for name in ("pip_size", "contract_size", "margin_rate", "min_lot", "max_lot", "stale_after_s")
            if (value := getattr(self, name)) is not None and value <= 0
        }
        if self.margin_rate is not None and self.margin_rate > 1:
            wrong["margin_rate"] = "A share: 1 at most."
        if self.outlier_percent is not None and self.outlier_percent < 0:
            wrong["outlier_percent"] = "Must not be below 0."
        if self.min_lot is not None and self.max_lot is not None and self.max_lot < self.min_lot:
            wrong["max_lot"] = "Must not be below min_lot."
        if self.fallback and self.fallback == self.source:
            wrong["fallback"] = "The source cannot stand in for itself."
        elif self.fallback and is_simulated(self.fallback) != is_simulated(
            self.source or default_feed(settings.DEMO)
        ):
            wrong["fallback"] = MIXED
        if self.digits is not None and self.digits > MAX_DIGITS:
            wrong["digits"] = f"{MAX_DIGITS} at most."
        if wrong:
            raise ValidationError(wrong)
