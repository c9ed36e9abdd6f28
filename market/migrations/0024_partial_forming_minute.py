from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0023_number_of_series")]

    operations = [
        migrations.AddField("formingminute", "partial", models.BooleanField(db_default=False, default=False))
    ]
