import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0013_words"),
        ("market", "0017_unsettled_ms"),
    ]

    operations = [
        migrations.AddField(
            model_name="ingestkey",
            name="account",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="ingest_keys",
                to="accounts.account",
            ),
        ),
        migrations.CreateModel(
            name="FormerPriceRight",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("symbols", models.TextField(blank=True)),
                ("known_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "symbols"), name="former_price_right_is_unique")
                ],
            },
        ),
    ]
