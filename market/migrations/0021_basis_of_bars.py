from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0020_partial_candle")]

    operations = [
        migrations.AlterField(
            model_name="candle",
            name="basis",
            field=models.CharField(
                choices=[
                    ("bid", "Bid"),
                    ("mid", "Mid"),
                    ("trades", "a venue's trade prices"),
                    ("import", "bars of a file"),
                ],
                default="bid",
                max_length=6,
            ),
        ),
    ]
