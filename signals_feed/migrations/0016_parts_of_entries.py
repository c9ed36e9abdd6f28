from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0015_names_of_before")]

    operations = [
        migrations.AddField(
            model_name="ledgerentry",
            name="part",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="What an arm is for, and its number; the day of an archive.",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="kind",
            field=models.CharField(
                choices=[
                    ("publish", "Publish"),
                    ("arm", "the engine begins to look for a tick"),
                    ("fill", "Fill"),
                    ("close_request", "the publisher asks to close"),
                    ("close", "Close"),
                    ("cancel", "Cancel"),
                    ("remove", "the demo was taken away"),
                    ("archive", "a day of the archive was sealed"),
                ],
                max_length=13,
            ),
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="signal",
            field=models.UUIDField(help_text="All zeros for a day of the archive."),
        ),
    ]
