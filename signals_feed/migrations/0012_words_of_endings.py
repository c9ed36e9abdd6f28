from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0011_publisher_requests")]

    operations = [
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
                    ("cancelled", "Cancelled by staff"),
                ],
                max_length=11,
            ),
        ),
    ]
