from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0009_key_pepper_name")]

    operations = [
        migrations.AddField(
            model_name="tier",
            name="archive",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether its keys open the archive of ticks and candles.",
            ),
        ),
    ]
