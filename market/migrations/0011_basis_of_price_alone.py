from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0010_mark_the_simulated")]

    operations = [
        migrations.AlterField(
            model_name="candle",
            name="basis",
            field=models.CharField(
                choices=[("bid", "Bid"), ("mid", "Mid"), ("trades", "a venue's trade prices")],
                default="bid",
                max_length=6,
            ),
        ),
    ]
