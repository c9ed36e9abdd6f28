from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0016_candle_seqs"),
    ]

    operations = [
        migrations.AddField(
            model_name="lastquote",
            name="unsettled_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
