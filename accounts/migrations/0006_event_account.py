from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_attempts")]

    operations = [
        migrations.AddField(
            model_name="controlevent",
            name="account_id",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="controlevent",
            index=models.Index(
                condition=models.Q(("account_id__isnull", False)),
                fields=["account_id", "-position"],
                name="events_of_account",
            ),
        ),
    ]
