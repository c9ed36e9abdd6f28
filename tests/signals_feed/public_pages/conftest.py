from __future__ import annotations

from collections.abc import Iterator

import pytest

from market import runtime as market
from signals_feed.publisher_checks import checked_marks, checked_results
from signals_feed.publishers.lookup import scorecards
from tests.factories import make_instrument


@pytest.fixture(autouse=True)
def _nothing_kept(db: None) -> Iterator[None]:
    make_instrument("EURUSD")
    for kept in (scorecards, checked_results, checked_marks, market.prices):
        kept.clear()
    yield
    for kept in (scorecards, checked_results, checked_marks, market.prices):
        kept.clear()
