from __future__ import annotations

import pytest

from instruments.models import Instrument
from tests.factories import make_calendar, make_instrument


@pytest.fixture
def instrument(transactional_db: None, clock: object, own_market: None) -> Instrument:
    """EURUSD, pushed; its market closes at 12:30 and opens at 13:30."""
    return make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))
