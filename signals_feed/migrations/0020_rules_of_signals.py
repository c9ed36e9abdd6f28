import django.utils.timezone
from django.db import migrations, models

PRICE = {"blank": True, "decimal_places": 8, "max_digits": 18, "null": True}


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0019_evidence_of_fills")]

    operations = [
        migrations.CreateModel(
            name="RulesBegun",
            fields=[
                ("rules", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("begun_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField(
            "signal", "rules", models.SmallIntegerField(db_default=1, default=1, editable=False)
        ),
        migrations.AddField("signal", "fill_price", models.DecimalField(**PRICE)),
        migrations.AddField("signal", "filled_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("signal", "rank_unit", models.DecimalField(**PRICE)),
        # Of the signals that there are, most are not the demo's: they need not be written for that.
        migrations.AddField(
            "signal",
            "is_demo",
            models.BooleanField(db_default=False, default=False, editable=False, null=True),
        ),
    ]
