from django.db import migrations, models

from core.schema import ConcurrentIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("signals_feed", "0025_feeds_of_reached")]

    operations = [
        ConcurrentIndex(
            "signal",
            models.Index(fields=["closed_at"], name="signal_closed_at", condition=models.Q(status="closed")),
        ),
    ]
