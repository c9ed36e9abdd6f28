from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0004_candle_partitions"),
    ]

    operations = [
        migrations.AddField(
            model_name="lastquote",
            name="flow_seq",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="lastquote",
            name="flow_state",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="lastquote",
            name="seq",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="EngineState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("writer", models.CharField(blank=True, max_length=120)),
                ("beats", models.PositiveBigIntegerField(default=0)),
                ("beat_at", models.DateTimeField(blank=True, null=True)),
                ("epoch", models.CharField(blank=True, max_length=32)),
                ("position", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="engine_state_is_one_row")
                ],
            },
        ),
    ]
