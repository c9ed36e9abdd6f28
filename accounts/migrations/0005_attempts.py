from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_usage")]

    operations = [
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("cache_key", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("value", models.TextField()),
                ("expires", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
