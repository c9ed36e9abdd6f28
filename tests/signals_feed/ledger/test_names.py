"""Whether somebody has published under a name is asked at each sign-up, however long the ledger is."""

from __future__ import annotations

import pytest
from django.db import connection

from signals_feed.ledger.names import has_published_as, published_as
from tests.factories import make_user
from tests.signals_feed.published_signals import make_published

pytestmark = pytest.mark.django_db


def test_only_the_whole_name_counts_in_whatever_case() -> None:
    make_published(user=make_user('o"Neil_1'))
    names = ('o"Neil_1', 'O"NEIL_1', 'o"neil', "Neil_1", 'o"NeilX1', "%")
    assert [name for name in names if has_published_as(name)] == ['o"Neil_1', 'O"NEIL_1']


def test_it_is_found_by_an_index() -> None:
    make_published()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A table as short as this one would be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "ledger_published_name" in published_as("somebody").explain()
