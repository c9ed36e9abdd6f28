"""What the market did: candles, last quotes, and how far imports and the engine came."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models import Key
from market.prices.candles import MOST_SOURCES, TIMEFRAMES


class BarFields(models.Model):
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


class Candle(BarFields):
    """A closed candle. Every interval is the aggregate of its 1m candles."""

    class Basis(models.TextChoices):
        BID = "bid"
        MID = "mid"
        TRADES = "trades", "a venue's trade prices"
        IMPORT = "import", "bars of a file"

    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.CASCADE, related_name="candles")
    timeframe = models.CharField(max_length=3, choices=[(name, name) for name in TIMEFRAMES])
    basis = models.CharField(max_length=6, choices=Basis, default=Basis.BID)
    # Simulated and real prices are two series: of one interval there may be a candle of each.
    simulated = models.BooleanField(default=False)
    source = models.CharField(
        max_length=MOST_SOURCES, blank=True, help_text="The feed; several in their order: kraken+binance."
    )

    partial = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The connection was lost or begun in it, and what was missed did not come later.",
    )
    by_venue = models.BooleanField(
        default=False, db_default=False, help_text="The venue's own bar of bid and ask, or partly so."
    )

    class Meta:
        ordering = ("-opened_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("instrument", "timeframe", "opened_at", "simulated"), name="candle_is_unique"
            ),
            *BarFields._meta.constraints,
            models.CheckConstraint(
                name="candle_timeframe_is_known", condition=Q(timeframe__in=list(TIMEFRAMES))
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.timeframe} {self.opened_at:%-d %b %Y, %H:%M} UTC"


class OrderFlowMinute(models.Model):
    """The order flow of a minute whose candle the engine closed out of ticks. One that was imported or read
    from a venue's history has none; the last ones of the demo's past have one that is made up as well."""

    # The unique index begins with it. Without a constraint the version before, which does not know of these
    # rows, can delete what they refer to.
    instrument = models.ForeignKey(
        "instruments.Instrument",
        on_delete=models.CASCADE,
        related_name="order_flow_minutes",
        db_index=False,
        db_constraint=False,
    )
    simulated = models.BooleanField()
    opened_at = models.DateTimeField()
    bid_volume = models.DecimalField(max_digits=24, decimal_places=8)
    ask_volume = models.DecimalField(max_digits=24, decimal_places=8)
    cumulative_delta = models.DecimalField(max_digits=24, decimal_places=8, help_text="Since 00:00 UTC.")
    absorptions = models.PositiveSmallIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("instrument", "simulated", "opened_at"), name="order_flow_minute_is_unique"
            ),
            models.CheckConstraint(
                name="order_flow_minute_volumes_are_not_negative",
                condition=Q(bid_volume__gte=0, ask_volume__gte=0),
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.opened_at:%Y-%m-%d %H:%M}"


class FormingMinute(BarFields):
    """The checkpoint of an instrument's forming 1m candle, so that a restart goes on with it."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="forming_minute"
    )
    source = models.CharField(max_length=MOST_SOURCES, blank=True)
    partial = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.opened_at:%Y-%m-%d %H:%M}"


class AbsorptionWindows(models.Model):
    """The volumes that an instrument's absorption is compared with, so that a restart goes on with them."""

    instrument = models.OneToOneField(
        "instruments.Instrument",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="absorption_windows",
        # Without a constraint the version before, which does not know these rows, can delete instruments.
        db_constraint=False,
    )
    # Of each window that counts, the oldest first: bid and ask volume, in hundred-millionths.
    volumes = models.JSONField()

    def __str__(self) -> str:
        return f"{self.instrument_id}"


class LastQuote(models.Model):
    """The last quote, so that a restart knows it even on a closed market, and the kind of the prices."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="last_quote"
    )
    bid = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    ask = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    quoted_at = models.DateTimeField(null=True, blank=True)
    simulated = models.BooleanField(default=False)
    source = models.CharField(max_length=40, blank=True, help_text="The feed that sent it.")
    # Since when they are of this kind; empty: always.
    kind_since = models.DateTimeField(null=True, blank=True)
    # The number of the last tick before that; empty if the version before wrote it.
    kind_after_seq = models.BigIntegerField(null=True, blank=True)
    # What goes on with it: the numbers given in the two streams, and the running sum of the order flow.
    seq = models.PositiveBigIntegerField(default=0)
    flow_seq = models.PositiveBigIntegerField(default=0)
    flow_state = models.JSONField(null=True, blank=True)
    # The last number of the closed candles of each timeframe; null where the version before wrote it.
    candle_seqs = models.JSONField(null=True, blank=True)
    # The last number in each source's own numbering: what it sends again after a crash is known by it.
    source_seqs = models.JSONField(default=dict, blank=True)
    # For how many milliseconds its prices were not settled, in all.
    unsettled_ms = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="last_quote_is_not_crossed",
                condition=Q(bid=None, ask=None, quoted_at=None)
                | Q(
                    bid__isnull=False,
                    ask__isnull=False,
                    quoted_at__isnull=False,
                    bid__gt=0,
                    ask__gte=F("bid"),
                ),
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.bid}/{self.ask}"


class FormerQuote(models.Model):
    """The last quote of the kind that the instrument's prices are not of now. It comes back with its kind."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="former_quote"
    )
    simulated = models.BooleanField()
    source = models.CharField(max_length=40, blank=True)
    bid = models.DecimalField(max_digits=18, decimal_places=8)
    ask = models.DecimalField(max_digits=18, decimal_places=8)
    quoted_at = models.DateTimeField()
    flow_state = models.JSONField(null=True, blank=True)
    source_seqs = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="former_quote_is_not_crossed", condition=Q(bid__gt=0, ask__gte=F("bid"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.bid}/{self.ask}"


class EngineState(models.Model):
    """Which process writes, and up to which record of its journal the database is written. One row."""

    writer = models.CharField(max_length=120, blank=True)
    # It rises with every write: one that stands still has lost its writer, whatever the clocks say.
    beats = models.PositiveBigIntegerField(default=0)
    beat_at = models.DateTimeField(null=True, blank=True)
    clock_at = models.DateTimeField(null=True, blank=True, help_text="Its own clock at the last beat.")
    epoch = models.CharField(max_length=32, blank=True)
    position = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (models.CheckConstraint(name="engine_state_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return f"{self.writer or 'no writer'} at {self.epoch}/{self.position}"


class IngestKey(Key):
    """Lets a source send ticks, and opens nothing else."""

    # Short enough for the `source` of an instrument, which says push:name. Two keys may share a name
    # while one takes over from the other: they are one source.
    name = models.SlugField(max_length=30, help_text="Names the source: ticks come from push:name.")
    prefix = models.CharField(max_length=18, unique=True, editable=False)
    symbols = models.TextField(
        blank=True, help_text="The symbols it may send, with spaces between them. Empty: all."
    )
    # Null for older keys, and for those that the operator made by a command. Without a constraint, the
    # previous version, which does not know of it, can delete accounts.
    account = models.ForeignKey(
        "accounts.Account",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        db_constraint=False,
        db_index=False,
        related_name="ingest_keys",
    )

    class Meta(Key.Meta):
        constraints = (
            models.CheckConstraint(
                name="ingest_key_digest_is_sha256", condition=Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
            models.CheckConstraint(
                name="ingest_key_name_is_a_slug", condition=Q(name__regex=r"^[A-Za-z0-9_-]+\Z")
            ),
        )


class FormerPriceRight(models.Model):
    """When a user was last known to be able to make the prices of some symbols; empty: all."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_constraint=False, related_name="+"
    )
    symbols = models.TextField(blank=True)
    known_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "symbols"), name="former_price_right_is_unique"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} until {self.known_at:%Y-%m-%d %H:%M}"


class UnfinishedImport(models.Model):
    """How far a file came, written in the transaction of its candles. A finished import has none."""

    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    basis = models.CharField(max_length=6)
    # Minutes before this one are stored; its first tick is in the block that begins here.
    minute_at = models.DateTimeField()
    offset = models.PositiveBigIntegerField()
    line = models.PositiveBigIntegerField()
    # Null where the version before wrote it, which may run beside this one.
    got_on_at = models.DateTimeField(auto_now=True, null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("instrument", "digest", "basis"), name="unfinished_import_is_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.digest[:12]} up to {self.minute_at:%Y-%m-%d %H:%M}"


class UnfinishedPast(models.Model):
    """A simulated past that is made beside the service. The last step of the demo removes all of them."""

    instrument = models.OneToOneField(
        "instruments.Instrument", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    until_at = models.DateTimeField(help_text="What came before this midnight is to be made.")
    maker = models.CharField(max_length=120, blank=True, help_text="The process that makes it now.")
    begun_at = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.instrument_id} before {self.until_at:%Y-%m-%d}"
