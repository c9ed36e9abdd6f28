"""Instruments and calendars in the back office."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from accounts.form_fields import AMBIGUOUS
from core.events.kinds import EventKind
from instruments.models import Instrument, TradingCalendar
from tests.accounts.back_office.office import (
    Office,
    add_to,
    address,
    change,
    list_of,
    logged,
    published,
    text_of,
)
from tests.factories import make_calendar, make_instrument

pytestmark = pytest.mark.django_db


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "symbol": "GBPUSD",
        "name": "British Pound / US Dollar",
        "type": "forex",
        "calendar": make_calendar().pk,
        "pip_size": "0.0001",
        "contract_size": "100000",
        "margin_rate": "0.05",
        "min_lot": "0.01",
        "max_lot": "100",
        "digits": "5",
        "volume_kind": "ticks",
        "order_flow_source": "tick_rule",
        "stale_after_s": "60",
        "outlier_percent": "0.5",
        "active": "on",
    } | changes


def test_a_new_and_an_edited_instrument_are_told_to_every_process(office: Office) -> None:
    office.post(add_to(Instrument), **fields())
    added = Instrument.objects.get()
    office.post(change(added), **fields(symbol="OTHER", digits="4"))
    added.refresh_from_db()
    assert (added.symbol, added.digits) == ("GBPUSD", 4)
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")] * 2
    assert [who for who, _ in logged(added)] == ["boss", "boss"]


def test_numbers_may_have_separators(office: Office) -> None:
    eurusd = make_instrument()
    page = text_of(office.get(change(eurusd)))
    assert re.search(r'<input type="text" name="contract_size"[^>]* inputmode="decimal"', page)
    assert 'type="number"' not in page
    office.post(change(eurusd), **fields(contract_size="4,090.50", stale_after_s="1,060"))
    eurusd.refresh_from_db()
    assert (eurusd.contract_size, eurusd.stale_after_s) == (Decimal("4090.5"), 1060)
    answer = office.post(change(eurusd), **fields(contract_size="4,090"))
    errors = answer.context["adminform"].form.errors
    assert errors == {"contract_size": [AMBIGUOUS]}


def test_what_is_in_use_cannot_be_deleted(office: Office) -> None:
    eurusd = make_instrument()
    for row in (eurusd, eurusd.calendar):
        assert office.post(address(row, "delete", row.pk), post="yes").status_code == 403
        office.act("delete_selected", row, post="yes")
        assert type(row).objects.exists()


@pytest.mark.parametrize(
    ("model", "field", "value", "reason"),
    [
        (Instrument, "symbol", "gbpusd", "Use upper-case letters"),
        (Instrument, "pip_size", "0", "Must be above 0."),
        (Instrument, "margin_rate", "1.1", "A share: 1 at most."),
        (Instrument, "max_lot", "0.001", "Must not be below min_lot."),
        (Instrument, "digits", "9", "8 at most."),
        (Instrument, "stale_after_s", "0", "Must be above 0."),
        (TradingCalendar, "timezone", "Mars/Olympus", ""),
        (TradingCalendar, "sessions", "always", ""),
        (TradingCalendar, "holidays", "Christmas", ""),
        (TradingCalendar, "holidays", "2026-12-25", ""),
    ],
)
def test_what_would_be_refused_is_told_beside_its_field(
    office: Office, model: type[Instrument | TradingCalendar], field: str, value: str, reason: str
) -> None:
    calendar = {"name": "new", "timezone": "UTC", "sessions": "24/7", "holidays": ""}
    values = fields() if model is Instrument else calendar
    errors = office.post(add_to(model), **(values | {field: value})).context["adminform"].form.errors
    assert list(errors) == [field]
    assert reason in errors[field][0]


def test_an_edited_calendar_is_told_to_every_process_and_an_unused_one_can_be_deleted(office: Office) -> None:
    calendar = make_calendar()
    office.post(change(calendar), timezone="UTC", sessions="Mon-Fri 09:00-17:00", holidays="2026-12-25")
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")]
    office.post(address(calendar, "delete", calendar.pk), post="yes")
    assert not TradingCalendar.objects.exists()
    assert [who for who, _ in logged(calendar)] == ["boss", "boss"]


def test_a_list_shows_a_pip_without_the_zeros_of_its_column(office: Office) -> None:
    make_instrument("XAUUSD", pip_size="0.01")
    page = text_of(office.get(list_of(Instrument)))
    assert "0.01" in page
    assert "0.01000000" not in page
