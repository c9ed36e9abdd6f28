from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from core.process import freeze_startup_objects

pytestmark = pytest.mark.served


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    gc.unfreeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def looks_at_all(number: int) -> int:
    """How often all that is there was looked through while so many objects came and stayed."""
    before: int = gc.get_stats()[2]["collections"]
    came = [[each] for each in range(number)]
    assert len(came) == number
    after: int = gc.get_stats()[2]["collections"]
    return after - before


def test_what_is_there_at_the_start_is_looked_through_no_more_and_what_came_since_is_not_kept() -> None:
    freeze_startup_objects()
    kept = gc.get_freeze_count()
    assert kept > 0
    since = [[number] for number in range(1000)]
    freeze_startup_objects()
    # Some of them may go: a thread of another test ends.
    assert gc.get_freeze_count() <= kept
    assert len(since) == 1000


def test_thousands_of_sockets_may_come_before_all_is_looked_through_again() -> None:
    freeze_startup_objects()
    assert looks_at_all(500_000) == 0
    gc.set_threshold(700, 10, 10)
    assert looks_at_all(500_000) > 0
