from django.db import migrations

REFUSAL = "A score is added, never changed."


def keep(apps, schema_editor):
    """An update of a score is an integrity error."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"""
            CREATE FUNCTION news_score_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'check_violation';
            END $$
        """)
        schema_editor.execute("""
            CREATE TRIGGER news_score_is_kept BEFORE UPDATE ON news_itemscore
            FOR EACH ROW EXECUTE FUNCTION news_score_is_kept()
        """)
    else:
        schema_editor.execute(f"""
            CREATE TRIGGER news_score_is_kept BEFORE UPDATE ON news_itemscore
            BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END
        """)


def let_go(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER news_score_is_kept ON news_itemscore")
        schema_editor.execute("DROP FUNCTION news_score_is_kept()")
    else:
        schema_editor.execute("DROP TRIGGER news_score_is_kept")


class Migration(migrations.Migration):
    dependencies = [("news", "0003_sources_scores_outcomes")]

    operations = [migrations.RunPython(keep, let_go)]
