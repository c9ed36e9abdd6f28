from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("status", "0005_rules_of_signals"),
    ]

    operations = [
        migrations.AddField(
            model_name="minute",
            name=f"age_{quantile}_ms",
            field=models.IntegerField(null=True),
        )
        for quantile in ("p50", "p95", "p99")
    ]
