"""What the demo made was told by its basis. Its quotes were not told at all: that of an instrument whose newest
minute is simulated is."""

from django.conf import settings
from django.db import migrations
from django.db.models import OuterRef, Subquery


def mark(apps, schema_editor):
    Candle, LastQuote = apps.get_model("market", "Candle"), apps.get_model("market", "LastQuote")
    own = Candle.objects.filter(instrument=OuterRef("pk"), timeframe="1m").order_by("-opened_at")
    demo = LastQuote.objects.annotate(newest=Subquery(own.values("basis")[:1])).filter(newest="demo")
    demo_ids = list(demo.values_list("pk", flat=True))
    LastQuote.objects.filter(pk__in=demo_ids).update(simulated=True, source="demo")
    FormingMinute = apps.get_model("market", "FormingMinute")
    FormingMinute.objects.filter(pk__in=demo_ids).update(source="demo")
    simulated = Candle.objects.filter(basis="demo")
    simulated.update(simulated=True, source="demo", basis=settings.CANDLE_PRICE)


def unmark(apps, schema_editor):
    """Where both kinds have a candle of one interval, only one of them fits the older table."""
    Candle = apps.get_model("market", "Candle")
    other = Candle.objects.filter(
        instrument=OuterRef("instrument"), timeframe=OuterRef("timeframe"), opened_at=OuterRef("opened_at")
    ).exclude(pk=OuterRef("pk"))
    simulated = Candle.objects.filter(simulated=True)
    simulated.annotate(other=Subquery(other.values("pk")[:1])).filter(other__isnull=False).delete()
    simulated.update(basis="demo")


class Migration(migrations.Migration):
    dependencies = [("market", "0009_simulated_and_real")]

    operations = [migrations.RunPython(mark, unmark)]
