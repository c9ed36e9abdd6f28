"""Who has published holds every name that is known of them. Names that look alike already stay with both; the
older account holds the look."""

import json

from django.db import migrations

from accounts.models import PSEUDONYM, look_of
from signals_feed.ledger.names import digest_of, folded


def hold_names(apps, schema_editor):
    held_names = apps.get_model("signals_feed", "HeldName").objects
    present = present_names(apps)
    named = [(name, pk) for pk, name in present.items()]
    once_named = [(name, pk if is_findable(present.get(pk)) else None) for name, pk in names_in_ledger(apps)]
    # All names before the first look, which may be another one's name.
    for spelled in (str, folded, look_of):
        for name, pk in named + once_named:
            held = {"digest": digest_of(spelled(name))}
            is_own = spelled is not look_of and held_names.filter(**held, user=None).update(user_id=pk)
            if not is_own:
                held_names.get_or_create(**held, defaults={"user_id": pk})


def present_names(apps):
    publishers = apps.get_model("signals_feed", "Signal").objects.order_by().values("user")
    users = apps.get_model("accounts", "User").objects.filter(pk__in=publishers)
    return dict(users.order_by("pk").values_list("pk", "username"))


def is_findable(name):
    """Not if the account was deleted: then no former name leads to it."""
    return name is not None and not name.startswith(PSEUDONYM)


def names_in_ledger(apps):
    """Version 0.1.0 called publishers by their names there."""
    entries = apps.get_model("signals_feed", "LedgerEntry").objects
    removed = entries.filter(kind="remove").values("signal")
    told = entries.filter(kind="publish").exclude(payload__contains='"user":"publisher-')
    payloads = told.exclude(signal__in=removed).values_list("payload", flat=True)
    facts = map(json.loads, payloads.iterator())
    return {(fact["user"], fact["user_id"]) for fact in facts}


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0014_held_names_have_users"), ("accounts", "0001_initial")]

    operations = [migrations.RunPython(hold_names, migrations.RunPython.noop)]
