from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0013_words")]

    operations = [
        migrations.CreateModel(
            name="VisitorAiUsage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("network", models.CharField(max_length=43)),
                ("day", models.DateField()),
                ("used", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("network", "day"), name="visitor_ai_usage_one_row_a_day")
                ],
            },
        ),
    ]
