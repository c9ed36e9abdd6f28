from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0019_clock_of_engine")]

    operations = [
        migrations.AddField(
            model_name="candle",
            name="partial",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The connection was lost or begun in it, and what was missed did not come later.",
            ),
        ),
        migrations.AddField(
            model_name="candle",
            name="by_venue",
            field=models.BooleanField(
                db_default=False, default=False, help_text="The venue's own bar of bid and ask, or partly so."
            ),
        ),
    ]
