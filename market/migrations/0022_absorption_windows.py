import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("instruments", "0006_withheld_source"),
        ("market", "0021_basis_of_bars"),
    ]

    operations = [
        migrations.CreateModel(
            name="AbsorptionWindows",
            fields=[
                (
                    "instrument",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="absorption_windows",
                        serialize=False,
                        to="instruments.instrument",
                    ),
                ),
                ("volumes", models.JSONField()),
            ],
        ),
    ]
