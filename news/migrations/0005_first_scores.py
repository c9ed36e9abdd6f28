from django.db import migrations

BATCH = 1_000


def remember(apps, schema_editor):
    """What items were given before there was a history is its beginning."""
    item, score = apps.get_model("news", "NewsItem"), apps.get_model("news", "ItemScore")
    scored = item.objects.filter(sentiment_score__isnull=False).exclude(model="")
    facts = scored.values_list("pk", "title", "sentiment_score", "model", "published_at")
    rows = (
        score(item_id=pk, title=title, score=value, model=model, scored_at=published_at)
        for pk, title, value, model, published_at in facts.iterator(chunk_size=BATCH)
    )
    score.objects.bulk_create(rows, batch_size=BATCH)


class Migration(migrations.Migration):
    dependencies = [("news", "0004_scores_are_kept")]

    operations = [migrations.RunPython(remember, migrations.RunPython.noop)]
