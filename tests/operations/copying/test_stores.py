"""What is asked of a database before it is copied, and what a fault in the middle of writing leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sqlite3 import IntegrityError

import pytest
from django.utils import timezone

from market.models import EngineState
from operations.copying.backing_up import EMPTY_LEDGER, ledger_head
from operations.copying.opening import open_url
from operations.copying.presence import was_in_use
from operations.copying.stores import Store
from signals_feed.ledger.ledger import LedgerHead
from tests.market.postgresql import in_place


@pytest.fixture
def url(filled: Callable[[str], str]) -> str:
    return filled("sqlite")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_url(url)
    yield opened
    opened.close()


def test_ledger_ends_at_its_head(store: Store, url: str) -> None:
    with in_place(url):
        head = LedgerHead.objects.get()
    assert ledger_head(store) == (3, head.hash)
    store.tell("DROP TABLE signals_feed_ledgerhead")
    assert ledger_head(store) == EMPTY_LEDGER


def test_engine_that_beat_within_a_minute_may_still_run(store: Store, url: str) -> None:
    assert not was_in_use(store)
    with in_place(url):
        EngineState.objects.update(writer="one:1:x", beat_at=timezone.now())
    assert was_in_use(store)
    with in_place(url):
        EngineState.objects.update(writer="")
    assert not was_in_use(store)


def test_fault_that_ended_the_transaction_is_told_as_it_is(store: Store) -> None:
    # SQLite rolls back by itself, too, where it cannot go on.
    with pytest.raises(IntegrityError, match="UNIQUE"), store.writing():
        store.tell("INSERT OR ROLLBACK INTO signals_feed_ledgerhead SELECT * FROM signals_feed_ledgerhead")
    assert store.ask("SELECT 1") == [(1,)]
