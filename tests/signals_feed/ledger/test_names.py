"""The ledger names publishers by pseudonyms; that a name is taken is known all the same, at each sign-up."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import connection

from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.names import HeldName, has_published_as, named_in_ledger
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.factories import make_user
from tests.signals_feed.published_signals import make_published, make_published_by_name

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def user_of(signal: Signal) -> str:
    payload = json.loads(LedgerEntry.objects.get(signal=signal.pk).payload)
    assert payload["user_id"] == signal.user_id
    return str(payload["user"])


def test_an_entry_tells_a_pseudonym_and_one_of_before_the_name() -> None:
    ada = make_user("ada")
    before, since = make_published_by_name(user=ada), make_published(user=ada)
    assert (user_of(before), user_of(since)) == ("ada", f"publisher-{ada.pk}")
    assert verify().fault == ""


@pytest.mark.parametrize("publish", [make_published, make_published_by_name])
def test_only_the_whole_name_counts_in_whatever_case(publish: Callable[..., Signal]) -> None:
    publish(user=make_user('o"Neil_1'))
    names = ('o"Neil_1', 'O"NEIL_1', 'o"neil', "Neil_1", 'o"NeilX1', "%")
    assert [name for name in names if has_published_as(name)] == ['o"Neil_1', 'O"NEIL_1']


def test_a_name_is_held_once_however_often_it_publishes() -> None:
    ada = make_user("ada")
    for _ in range(2):
        make_published(user=ada)
    assert HeldName.objects.count() == 1


def test_it_is_found_by_an_index() -> None:
    make_published()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A table as short as this one would be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "ledger_published_name" in named_in_ledger("somebody").explain()
