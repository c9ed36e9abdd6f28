from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("signals_feed", "0011_publisher_requests"),
    ]

    operations = [
        migrations.AlterField(
            model_name="signal",
            name="best_r",
            field=models.DecimalField(
                blank=True, decimal_places=4, max_digits=12, null=True, verbose_name="furthest ahead, in R"
            ),
        ),
        migrations.AlterField(
            model_name="signal",
            name="pnl",
            field=models.DecimalField(
                blank=True, decimal_places=1, max_digits=14, null=True, verbose_name="result in pips"
            ),
        ),
        migrations.AlterField(
            model_name="signal",
            name="pnl_percent",
            field=models.DecimalField(
                blank=True, decimal_places=4, max_digits=12, null=True, verbose_name="result in percent"
            ),
        ),
        migrations.AlterField(
            model_name="signal",
            name="pnl_r",
            field=models.DecimalField(
                blank=True, decimal_places=4, max_digits=12, null=True, verbose_name="result in R"
            ),
        ),
        migrations.AlterField(
            model_name="signal",
            name="worst_r",
            field=models.DecimalField(
                blank=True, decimal_places=4, max_digits=12, null=True, verbose_name="furthest behind, in R"
            ),
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
                    ("cancelled", "Cancelled by staff"),
                ],
                max_length=11,
            ),
        ),
    ]
