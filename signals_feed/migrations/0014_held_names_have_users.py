import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def take_down(apps, schema_editor):
    """Backwards: a trigger reads the column."""
    from signals_feed.ledger.guards import take_down_triggers

    take_down_triggers(schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("signals_feed", "0013_cancelled"),
    ]

    operations = [
        migrations.AddField(
            model_name="heldname",
            name="user",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="held_names",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, take_down),
    ]
