from django.db import migrations

TIERS = (("free", 1, 60, 2, 5), ("pro", 2, 120, 5, 20), ("premium", 3, 300, 10, 50))


def add_tiers(apps, schema_editor):
    Tier = apps.get_model("accounts", "Tier")
    for name, rank, requests, streams, ai_calls in TIERS:
        limits = {"requests_per_minute": requests, "streams": streams, "ai_calls_per_day": ai_calls}
        Tier.objects.get_or_create(name=name, defaults={"rank": rank, **limits})


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunPython(add_tiers, migrations.RunPython.noop)]
