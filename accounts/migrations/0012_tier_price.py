from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0011_archive_of_premium")]

    operations = [
        migrations.AddField(
            model_name="tier",
            name="price",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="On the pricing page, such as “$49 a month”. Empty: “On request”, or “No charge” for Free.",
                max_length=40,
            ),
        ),
    ]
