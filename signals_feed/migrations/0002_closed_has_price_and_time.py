from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """A comparison with NULL is neither true nor false, and a check lets that pass."""

    dependencies = [("signals_feed", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("signal", "signal_closed_iff_result"),
        migrations.AddConstraint(
            "signal",
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
        ),
    ]
