from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.clock import now_ms
from instruments.models import Instrument
from signals_feed.checking import check_signals
from signals_feed.contradictions import contradictions
from signals_feed.judging.reading import read_records
from signals_feed.models import Signal
from tests.factories import make_calendar, make_instrument

from .watched_engine import TAPE


@pytest.fixture
def instrument(transactional_db: None, clock: object, own_market: None) -> Iterator[Instrument]:
    """EURUSD, pushed; its market closes at 12:30 and opens at 13:30. However a signal ends there, its record
    holds before the judge."""
    TAPE.clear()
    yield make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))
    signals = list(Signal.objects.select_related("instrument"))
    assert [found.fault for found in check_signals(signals).values() if found.fault] == []
    for entries in read_records([signal.pk for signal in signals if signal.rules == 2]).values():
        assert contradictions(entries, TAPE or None, now_ms()) == []
