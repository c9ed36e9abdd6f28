from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0023_undelivered_decisions")]

    operations = [
        migrations.AddField(
            "reached", "others", models.CharField(blank=True, db_default="", default="", max_length=80)
        ),
    ]
