"""The unit of `rank_r`: half the largest jump that the stored minutes allow."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from instruments.models import Instrument
from signals_feed.publishing.actions import rank_unit
from tests.factories import NOON, make_candle, make_instrument

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def minute(instrument: Instrument, days_ago: float, *prices: str, **changes: Any) -> None:
    """Open, high, low and close."""
    changes |= zip(("open", "high", "low", "close"), map(Decimal, prices), strict=True)
    make_candle(instrument, opened_at=NOON - timedelta(days=days_ago), **changes)


FLAT = ("1.08", "1.08", "1.08", "1.08")


@pytest.mark.parametrize(
    ("last", "unit"),
    [
        (("1.08", "1.09", "1.06", "1.08"), "0.015"),
        # Over a closure, from the close before to the furthest price after.
        (("1.20", "1.22", "1.19", "1.20"), "0.07"),
        (("1.00", "1.01", "0.98", "1.00"), "0.05"),
    ],
)
def test_unit_is_half_of_the_furthest_that_a_tick_can_have_moved_the_price(
    last: tuple[str, ...], unit: str
) -> None:
    instrument = make_instrument()
    minute(instrument, 91, *FLAT)
    minute(instrument, 3, *last)
    assert rank_unit(instrument.pk, NOON) == Decimal(unit)


def test_unit_is_of_the_instruments_own_minutes_of_400_days() -> None:
    instrument, wild = make_instrument(), ("1", "9", "1", "9")
    minute(instrument, 399, *FLAT)
    minute(instrument, 0.5, "1.08", "1.084", "1.08", "1.08")
    for days_ago, changes in ((401, {}), (0, {}), (2, {"simulated": True}), (2, {"timeframe": "1h"})):
        minute(instrument, days_ago, *wild, **changes)
    minute(make_instrument("XAUUSD"), 2, *wild)
    assert rank_unit(instrument.pk, NOON) == Decimal("0.002")


def test_what_is_known_for_less_than_90_days_has_no_unit() -> None:
    instrument = make_instrument()
    minute(instrument, 89.9, *FLAT)
    assert rank_unit(instrument.pk, NOON) is None
    minute(instrument, 90, *FLAT)
    assert rank_unit(instrument.pk, NOON) == 0
