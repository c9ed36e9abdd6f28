from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine

from market import runtime as market
from tests.factories import NOON


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """The wall clock stands at noon until a test moves it."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def own_market() -> Iterator[None]:
    """The running service's market, left as empty as it was found."""
    market.prices.clear()
    yield
    market.prices.clear()
