from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("signals_feed", "0012_words"),
    ]

    operations = [
        migrations.AlterField(
            model_name="signal",
            name="cancel_reason",
            field=models.CharField(blank=True, help_text="Why it was cancelled.", max_length=200),
        ),
        migrations.AlterField(
            model_name="signal",
            name="close_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("take_profit", "Target reached"),
                    ("stop_loss", "Stopped out"),
                    ("manual", "Closed by the publisher"),
                    ("expired", "Expired"),
                    ("cancelled", "Cancelled"),
                ],
                max_length=11,
            ),
        ),
    ]
