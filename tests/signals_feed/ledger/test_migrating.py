"""A ledger of the last release is brought to this version, and both go on writing it. The rows in
released.json were written by the code of 0.1.0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from accounts.models import Account, User
from signals_feed.ledger.guards import missing_triggers, put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import LedgerEntry, publication_payload
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from signals_feed.publishing.actions import remove_demo
from tests.factories import make_account, make_instrument
from tests.signals_feed.published_signals import TERMS, make_published

from .by_hand import add

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]
RELEASED = ("signals_feed", "0008_feed_of_a_publisher")
ROWS = json.loads(Path(__file__).with_name("released.json").read_text())
REAL, DEMO, INSTRUMENT = 9001, 9002, 9001
ModelOf = Callable[[str], Any]


@pytest.fixture
def released() -> Iterator[ModelOf]:
    """The models of the last release, with its rows. The database goes back to it and comes on again."""
    make_account(User.objects.create(pk=REAL, username="anna"))
    make_account(User.objects.create(pk=DEMO, username="aurora_fx"), is_demo=True)
    make_instrument("GBPUSD", pk=INSTRUMENT)
    call_command("migrate", *RELEASED, verbosity=0)
    assert missing_triggers() == set()
    models = MigrationExecutor(connection).loader.project_state(RELEASED).apps
    try:
        take_down_triggers()
        for name, rows in ROWS.items():
            model = models.get_model("signals_feed", name)
            fields = {field.attname: field for field in model._meta.concrete_fields}
            for row in rows:
                model(**{name: fields[name].to_python(value) for name, value in row.items()}).save()
        put_up_triggers()
        yield lambda name: models.get_model("signals_feed", name)
    finally:
        call_command("migrate", verbosity=0)


def of_the_demo() -> dict[int, set[bool | None]]:
    users = {user: set[bool | None]() for user in (REAL, DEMO)}
    for user, is_demo in Signal.objects.values_list("user", "is_demo"):
        users[user].add(is_demo)
    return users


def publish_as_before(released: ModelOf, user: int) -> None:
    signal = released("Signal")(user_id=user, instrument_id=INSTRUMENT, direction="buy", **TERMS)
    signal.save()
    payload = publication_payload(Signal.objects.get(pk=signal.pk), None)
    add("publish", signal.pk, **payload, user=f"publisher-{user}", symbol="GBPUSD")


@pytest.mark.served
def test_released_ledger_keeps_each_hash_and_goes_on_beside_the_version_before(released: ModelOf) -> None:
    before = [(row["hash"], row["payload"]) for row in ROWS["LedgerEntry"]]
    call_command("migrate", verbosity=0)
    entries = LedgerEntry.objects.order_by("position")
    assert list(entries.values_list("hash", "payload")) == before
    assert of_the_demo() == {REAL: {False}, DEMO: {True}}
    make_published(user=User.objects.get(pk=REAL))
    assert json.loads(entries.last().payload)["number"] == 4  # type: ignore[union-attr]
    assert verify().fault == ""
    for user in (REAL, DEMO):
        publish_as_before(released, user)
    make_published(user=User.objects.get(pk=REAL))
    assert of_the_demo() == {REAL: {False, None}, DEMO: {True, None}}
    assert verify().fault == ""
    Account.objects.update(is_demo=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        remove_demo([REAL])
    remove_demo([DEMO])
    assert (verify().fault, missing_triggers()) == ("", set())
