from __future__ import annotations

import pytest

from instruments.catalogue import NOTHING, catalogue, nothing_stored
from instruments.models import WithheldSource
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db


def test_what_was_read_first_never_replaces_what_was_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    make_instrument("EURUSD")
    WithheldSource.objects.create(name="oanda")

    def make_another_meanwhile(instrument_id: int) -> frozenset[str]:
        """Asked once the rows have been read."""
        monkeypatch.setattr(catalogue, "stored_sources", nothing_stored)
        make_instrument("GBPUSD")
        return NOTHING

    monkeypatch.setattr(catalogue, "stored_sources", make_another_meanwhile)
    catalogue.load_now()

    assert [facts.symbol for facts in catalogue.all()] == ["EURUSD", "GBPUSD"]
