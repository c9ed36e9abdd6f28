from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("market", "0022_absorption_windows")]

    operations = [
        migrations.AddField("lastquote", "kind_after_seq", models.BigIntegerField(blank=True, null=True))
    ]
