import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instruments", "0003_source_and_fallback"),
        ("market", "0008_source_seqs"),
    ]

    operations = [
        migrations.AddField(
            model_name="candle",
            name="simulated",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="candle",
            name="source",
            field=models.CharField(
                blank=True, help_text="The feed; several in their order: kraken+binance.", max_length=120
            ),
        ),
        migrations.RemoveConstraint(model_name="candle", name="candle_is_unique"),
        migrations.AddConstraint(
            model_name="candle",
            constraint=models.UniqueConstraint(
                fields=("instrument", "timeframe", "opened_at", "simulated"), name="candle_is_unique"
            ),
        ),
        migrations.AddField(
            model_name="formingminute",
            name="source",
            field=models.CharField(blank=True, max_length=120),
        ),
        migrations.AddField(
            model_name="lastquote",
            name="simulated",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="lastquote",
            name="source",
            field=models.CharField(blank=True, help_text="The feed that sent it.", max_length=40),
        ),
        migrations.AddField(
            model_name="lastquote",
            name="kind_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="lastquote",
            name="bid",
            field=models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True),
        ),
        migrations.AlterField(
            model_name="lastquote",
            name="ask",
            field=models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True),
        ),
        migrations.AlterField(
            model_name="lastquote",
            name="quoted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RemoveConstraint(model_name="lastquote", name="last_quote_is_not_crossed"),
        migrations.AddConstraint(
            model_name="lastquote",
            constraint=models.CheckConstraint(
                condition=models.Q(bid=None, ask=None, quoted_at=None)
                | models.Q(
                    bid__isnull=False,
                    ask__isnull=False,
                    quoted_at__isnull=False,
                    bid__gt=0,
                    ask__gte=models.F("bid"),
                ),
                name="last_quote_is_not_crossed",
            ),
        ),
        migrations.CreateModel(
            name="FormerQuote",
            fields=[
                (
                    "instrument",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="former_quote",
                        serialize=False,
                        to="instruments.instrument",
                    ),
                ),
                ("simulated", models.BooleanField()),
                ("source", models.CharField(blank=True, max_length=40)),
                ("bid", models.DecimalField(decimal_places=8, max_digits=18)),
                ("ask", models.DecimalField(decimal_places=8, max_digits=18)),
                ("quoted_at", models.DateTimeField()),
                ("flow_state", models.JSONField(blank=True, null=True)),
                ("source_seqs", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(bid__gt=0, ask__gte=models.F("bid")),
                        name="former_quote_is_not_crossed",
                    )
                ],
            },
        ),
    ]
