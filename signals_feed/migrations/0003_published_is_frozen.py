from django.db import migrations

TERMS = (
    *("id", "user_id", "instrument_id", "direction", "entry", "stop_loss", "take_profit"),
    *("tradable_price", "published_at"),
)
REFUSAL = "A published signal keeps its terms, and a closed one does not change."


def freeze(apps, schema_editor):
    """An update that changes a term, or anything of a closed signal, is an integrity error."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"""
            CREATE FUNCTION signal_is_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF OLD.status = 'closed' OR {changed("IS DISTINCT FROM")} THEN
                    RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'check_violation';
                END IF;
                RETURN NEW;
            END $$
        """)
        schema_editor.execute("""
            CREATE TRIGGER signal_is_frozen BEFORE UPDATE ON signals_feed_signal
            FOR EACH ROW EXECUTE FUNCTION signal_is_frozen()
        """)
    else:
        schema_editor.execute(f"""
            CREATE TRIGGER signal_is_frozen BEFORE UPDATE ON signals_feed_signal
            WHEN OLD.status = 'closed' OR {changed("IS NOT")}
            BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END
        """)


def thaw(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER signal_is_frozen ON signals_feed_signal")
        schema_editor.execute("DROP FUNCTION signal_is_frozen()")
    else:
        schema_editor.execute("DROP TRIGGER signal_is_frozen")


def changed(differs):
    return " OR ".join(f"NEW.{term} {differs} OLD.{term}" for term in TERMS)


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0002_closed_has_price_and_time")]

    operations = [migrations.RunPython(freeze, thaw)]
