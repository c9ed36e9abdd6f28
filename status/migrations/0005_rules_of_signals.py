from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("status", "0004_words")]

    operations = [
        migrations.AddField("processreport", "rules", models.SmallIntegerField(db_default=1, default=1)),
    ]
