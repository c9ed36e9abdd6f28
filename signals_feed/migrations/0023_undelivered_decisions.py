import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0022_demo_of_before")]

    operations = [
        migrations.CreateModel(
            name="Undelivered",
            fields=[
                (
                    "signal",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="undelivered",
                        serialize=False,
                        to="signals_feed.signal",
                    ),
                ),
                ("decision", models.JSONField()),
            ],
        ),
    ]
