from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="SiteText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        choices=[("terms", "Terms of use"), ("privacy", "Privacy")],
                        max_length=20,
                        unique=True,
                    ),
                ),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="Markdown. HTML is shown as it is written. Leave it empty to return to the text"
                        " that comes with Tickwire.",
                    ),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Not set while the text is the one that comes with Tickwire.",
                        null=True,
                    ),
                ),
            ],
            options={"ordering": ("name",)},
        ),
    ]
