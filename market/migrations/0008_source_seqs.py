from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0007_ingest_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="lastquote",
            name="source_seqs",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
