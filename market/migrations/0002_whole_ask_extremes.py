from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """A candle has both extremes of the ask or neither, and one of the six intervals."""

    dependencies = [("market", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("candle", "candle_ask_extremes_are_ordered"),
        migrations.AddConstraint(
            "candle",
            models.CheckConstraint(
                name="candle_ask_extremes_are_ordered",
                condition=Q(ask_high__isnull=True, ask_low__isnull=True)
                | Q(ask_high__isnull=False, ask_low__isnull=False, ask_high__gte=F("ask_low"), ask_low__gt=0),
            ),
        ),
        migrations.AddConstraint(
            "candle",
            models.CheckConstraint(
                name="candle_timeframe_is_known",
                condition=Q(timeframe__in=["1m", "5m", "15m", "1h", "4h", "1d"]),
            ),
        ),
    ]
