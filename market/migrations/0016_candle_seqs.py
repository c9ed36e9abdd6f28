from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0015_order_flow_minute"),
    ]

    operations = [
        migrations.AddField(
            model_name="lastquote",
            name="candle_seqs",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
