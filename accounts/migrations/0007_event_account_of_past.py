from django.db import migrations
from django.db.models import BigIntegerField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast


def name_accounts(apps, schema_editor):
    events = apps.get_model("accounts", "ControlEvent").objects
    named = Cast(KeyTextTransform("account", "facts"), BigIntegerField())
    events.filter(facts__has_key="account").update(account_id=named)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_event_account")]

    operations = [migrations.RunPython(name_accounts, migrations.RunPython.noop)]
