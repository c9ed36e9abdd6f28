import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0006_unfinished_import")]

    operations = [
        migrations.CreateModel(
            name="IngestKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.SlugField(help_text="Names the source: ticks come from push:name.", max_length=30),
                ),
                ("prefix", models.CharField(editable=False, max_length=18, unique=True)),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "symbols",
                    models.TextField(
                        blank=True, help_text="The symbols it may send, with spaces between them. Empty: all."
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                "ordering": ("-created_at", "-pk"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(digest__regex=r"^[0-9a-f]{64}$"),
                        name="ingest_key_digest_is_sha256",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(name__regex=r"^[A-Za-z0-9_-]+\Z"),
                        name="ingest_key_name_is_a_slug",
                    ),
                ],
            },
        )
    ]
