from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0023_undelivered_decisions")]

    operations = [
        migrations.AddField(
            "watchmark", "followed", models.CharField(db_default="", default="", max_length=60)
        ),
    ]
