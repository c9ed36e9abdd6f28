from django.db import migrations, models

# It does not know the column.
contracts = "0.1.0"


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0021_signals_of_the_demo")]

    operations = [
        # What an older version writes from now on is NULL.
        migrations.AlterField(
            model_name="signal",
            name="is_demo",
            field=models.BooleanField(default=False, editable=False, null=True),
        ),
    ]
