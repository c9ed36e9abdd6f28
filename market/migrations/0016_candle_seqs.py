from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0014_key_pepper_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="lastquote",
            name="candle_seqs",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
