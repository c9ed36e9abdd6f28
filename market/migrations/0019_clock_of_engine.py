from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0018_own_prices"),
    ]

    operations = [
        migrations.AddField(
            model_name="enginestate",
            name="clock_at",
            field=models.DateTimeField(blank=True, help_text="Its own clock at the last beat.", null=True),
        ),
    ]
