import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instruments", "0003_source_and_fallback"),
        ("market", "0005_engine_state"),
    ]

    operations = [
        migrations.CreateModel(
            name="UnfinishedImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(help_text="SHA-256 of the file.", max_length=64)),
                ("basis", models.CharField(max_length=6)),
                ("minute_at", models.DateTimeField()),
                ("offset", models.PositiveBigIntegerField()),
                ("line", models.PositiveBigIntegerField()),
                (
                    "instrument",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="instruments.instrument",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("instrument", "digest", "basis"), name="unfinished_import_is_unique"
                    )
                ],
            },
        ),
    ]
