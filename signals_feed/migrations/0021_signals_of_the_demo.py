from django.db import migrations


def mark(apps, schema_editor):
    """The triggers that keep closed signals as they are rest meanwhile, for others too late to notice."""
    demo = apps.get_model("accounts", "Account").objects.filter(is_demo=True)
    signals = apps.get_model("signals_feed", "Signal").objects.filter(user__in=demo.values("user"))
    if not signals.exists():
        return
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    if is_postgresql:
        schema_editor.execute("ALTER TABLE signals_feed_signal DISABLE TRIGGER USER")
    signals.update(is_demo=True)
    if is_postgresql:
        schema_editor.execute("ALTER TABLE signals_feed_signal ENABLE TRIGGER USER")


def take_down(apps, schema_editor):
    """Backwards: triggers read the new columns."""
    from signals_feed.ledger.guards import take_down_triggers

    take_down_triggers(schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0020_rules_of_signals"), ("accounts", "0001_initial")]

    operations = [migrations.RunPython(mark, take_down)]
