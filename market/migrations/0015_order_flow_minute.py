import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instruments", "0006_withheld_source"),
        ("market", "0014_key_pepper_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="OrderFlowMinute",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("simulated", models.BooleanField()),
                ("opened_at", models.DateTimeField()),
                ("bid_volume", models.DecimalField(decimal_places=8, max_digits=24)),
                ("ask_volume", models.DecimalField(decimal_places=8, max_digits=24)),
                (
                    "cumulative_delta",
                    models.DecimalField(decimal_places=8, help_text="Since 00:00 UTC.", max_digits=24),
                ),
                ("absorptions", models.PositiveSmallIntegerField()),
                (
                    "instrument",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="order_flow_minutes",
                        to="instruments.instrument",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("instrument", "simulated", "opened_at"), name="order_flow_minute_is_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(bid_volume__gte=0, ask_volume__gte=0),
                        name="order_flow_minute_volumes_are_not_negative",
                    ),
                ],
            },
        ),
    ]
