from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0009_ledger_by_published_name")]

    operations = [
        migrations.CreateModel(
            name="HeldName",
            fields=[("digest", models.CharField(max_length=64, primary_key=True, serialize=False))],
        ),
    ]
