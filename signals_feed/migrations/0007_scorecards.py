from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0006_ledger_of_the_past")]

    operations = [
        migrations.AddIndex(
            "signal",
            models.Index(fields=("user", "status", "closed_at", "id"), name="signal_scorecard"),
        ),
    ]
