from django.db import migrations


def open_archive(apps, schema_editor):
    apps.get_model("accounts", "Tier").objects.filter(name="premium").update(archive=True)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_tier_archive")]

    operations = [migrations.RunPython(open_archive, migrations.RunPython.noop)]
