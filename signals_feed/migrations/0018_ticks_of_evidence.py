from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0017_kinds_of_entries")]

    operations = [
        migrations.AddField(
            "evidence", "feed", models.CharField(blank=True, db_default="", default="", max_length=80)
        ),
        migrations.AddField("evidence", "simulated", models.BooleanField(null=True)),
        migrations.AddField("evidence", "accepted_ms", models.BigIntegerField(null=True)),
        migrations.AddField("evidence", "settled", models.BooleanField(null=True)),
        migrations.AddField("evidence", "unsettled_ms", models.BigIntegerField(null=True)),
        migrations.AlterField(
            model_name="evidence",
            name="kind",
            field=models.CharField(
                choices=[("entry", "Entry"), ("fill", "Fill"), ("exit", "Exit")], max_length=5
            ),
        ),
    ]
