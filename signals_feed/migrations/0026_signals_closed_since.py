from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0025_feeds_of_reached")]

    operations = [
        migrations.AddIndex(
            "signal",
            models.Index(fields=["closed_at"], name="signal_closed_at", condition=models.Q(status="closed")),
        ),
    ]
