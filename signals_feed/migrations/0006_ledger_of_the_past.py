"""What was published and closed before there was a ledger becomes its beginning, in the order it happened."""

from decimal import Decimal

from django.db import migrations
from django.db.models import Case, F, Value, When

from signals_feed.ledger.ledger import (
    FIRST_PREVIOUS_HASH,
    cancellation_payload,
    canonical,
    chained,
    closure_payload,
    publication_payload,
    published_names,
)


def let_go(apps, schema_editor):
    """From here on the triggers are those of guards.py, put up after migrating."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER IF EXISTS signal_is_frozen ON signals_feed_signal")
        schema_editor.execute("DROP FUNCTION IF EXISTS signal_is_frozen()")
    else:
        schema_editor.execute("DROP TRIGGER IF EXISTS signal_is_frozen")


def add_excursions(apps, schema_editor):
    """Nobody watched how far the price went; it went as far as the end, and began at nought."""
    closed = apps.get_model("signals_feed", "Signal").objects.filter(status="closed", best_r=None)
    closed.update(
        best_r=Case(When(pnl_r__gt=0, then=F("pnl_r")), default=Value(Decimal(0))),
        worst_r=Case(When(pnl_r__lt=0, then=F("pnl_r")), default=Value(Decimal(0))),
    )


def facts(signal):
    yield signal.published_at, "publish", publication_payload(signal, None) | published_names(signal)
    if signal.cancel_reason:
        yield signal.closed_at or signal.published_at, "cancel", cancellation_payload(signal)
    if signal.status == "closed":
        yield signal.closed_at, "close", closure_payload(signal, None)


def begin_ledger(apps, schema_editor):
    signals = apps.get_model("signals_feed", "Signal").objects.select_related("user", "instrument")
    entry_model = apps.get_model("signals_feed", "LedgerEntry")
    told = sorted(
        (
            (*fact, signal.pk, step)
            for signal in signals.iterator()
            for step, fact in enumerate(facts(signal))
        ),
        key=lambda each: (each[0], each[3], each[4]),
    )
    previous, entries = FIRST_PREVIOUS_HASH, []
    for position, (_, kind, payload, signal_id, _) in enumerate(told, 1):
        about = {"position": position, "kind": kind, "signal": str(signal_id)}
        text = canonical(about | payload)
        hashed = chained(previous, text)
        entries.append(
            entry_model(
                position=position, kind=kind, signal=signal_id, payload=text, previous=previous, hash=hashed
            )
        )
        previous = hashed
    entry_model.objects.bulk_create(entries, batch_size=1000)
    if entries:
        apps.get_model("signals_feed", "LedgerHead").objects.create(
            pk=1, position=len(entries), hash=previous
        )


def take_down(apps, schema_editor):
    """Backwards: the guards would refuse what is undone."""
    from signals_feed.ledger.guards import take_down_triggers

    take_down_triggers(schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [
        ("signals_feed", "0005_evidence_and_ledger"),
        ("accounts", "0001_initial"),
        ("instruments", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(let_go, take_down),
        migrations.RunPython(add_excursions, migrations.RunPython.noop),
        migrations.RunPython(begin_ledger, migrations.RunPython.noop),
    ]
