from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0024_followed")]

    operations = [
        migrations.AddField(
            "reached", "others", models.CharField(blank=True, db_default="", default="", max_length=80)
        ),
    ]
