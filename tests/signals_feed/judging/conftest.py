from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

import pytest

from core.clock import now_ms
from instruments.models import Instrument
from signals_feed import closing
from signals_feed.bundle.writing import windows
from signals_feed.closing import Ending, write_endings
from signals_feed.contradictions import by_windows, contradictions
from signals_feed.exits import Tick
from signals_feed.judging.reading import read_records
from signals_feed.models import Signal
from signals_feed.record import Payload
from signals_feed.result_checks import check_signals
from tests.factories import make_calendar, make_instrument

from .watched_engine import TAPE


def faults() -> list[str]:
    checks = check_signals(list(Signal.objects.select_related("instrument")))
    return [found.fault for found in checks.values() if found.fault]


@pytest.fixture
def faults_between(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Between any two transactions somebody may verify the ledger, or the engine die: what is found then."""
    found: list[str] = []

    def write(endings: Collection[Ending]) -> dict[UUID, str]:
        outcomes = write_endings(endings)
        found.extend(faults())
        return outcomes

    monkeypatch.setattr(closing, "write_endings", write)
    return found


@pytest.fixture
def instrument(
    transactional_db: None, clock: object, own_market: None, faults_between: list[str]
) -> Iterator[Instrument]:
    """EURUSD, pushed; its market closes at 12:30 and opens at 13:30. However a signal ends there, its record
    holds before the judge, and held on the way."""
    TAPE.clear()
    yield make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))
    assert [*faults_between, *faults()] == []
    for entries in read_records(list(Signal.objects.filter(rules=2).values_list("pk", flat=True))).values():
        assert contradictions(entries, TAPE or None, now_ms()) == []
        assert by_windows(entries, [*windows(entries, taped)]) == []


def taped(publish: Payload, since_ms: int, until_ms: int) -> list[Tick] | None:
    return [tick for tick in TAPE if since_ms <= tick.accepted_ms <= until_ms] if TAPE else None
