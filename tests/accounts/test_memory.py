from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from accounts.memory import settle


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_there_at_the_start_is_looked_through_no_more() -> None:
    settle()

    assert gc.get_freeze_count() > 0


def test_what_came_since_is_not_kept_for_ever() -> None:
    settle()
    kept = gc.get_freeze_count()
    since = [[number] for number in range(1000)]
    settle()

    assert gc.get_freeze_count() == kept
    assert len(since) == 1000
