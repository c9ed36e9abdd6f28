import django.db.models.deletion
from django.db import migrations, models

SIGNAL = {
    "db_constraint": False,
    "on_delete": django.db.models.deletion.CASCADE,
    "primary_key": True,
    "serialize": False,
    "to": "signals_feed.signal",
}


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0022_demo_of_before")]

    operations = [
        migrations.CreateModel(
            name="Undelivered",
            fields=[
                ("signal", models.OneToOneField(related_name="undelivered", **SIGNAL)),
                ("decision", models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name="Reached",
            fields=[
                ("signal", models.OneToOneField(related_name="reached", **SIGNAL)),
                ("high", models.DecimalField(decimal_places=8, max_digits=18)),
                ("low", models.DecimalField(decimal_places=8, max_digits=18)),
            ],
        ),
    ]
