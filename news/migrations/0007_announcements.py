import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("news", "0006_outcome_sides")]

    operations = [
        migrations.CreateModel(
            name="NewsAnnouncement",
            fields=[
                (
                    "position",
                    models.BigIntegerField(
                        help_text="That of its control event.", primary_key=True, serialize=False
                    ),
                ),
                ("announced_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="announcement",
                        to="news.newsitem",
                    ),
                ),
            ],
        ),
    ]
