from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("news", "0005_first_scores")]

    operations = [
        migrations.AlterField(
            model_name="outcome",
            name="symbols",
            field=models.CharField(
                help_text="What is looked at, with spaces between; -USDJPY where the inverse is.",
                max_length=200,
            ),
        ),
    ]
