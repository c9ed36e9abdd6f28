"""Ingest keys in the back office."""

from __future__ import annotations

import re
from typing import Any

import pytest

from accounts.key_text import is_well_formed
from core.events.kinds import EventKind
from market.models import IngestKey
from market.push.keys import LEAD, issue_ingest_key
from tests.accounts.back_office.office import Office, add_to, address, change, logged, published, text_of
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> IngestKey:
    return issue_ingest_key("desk", by="test")[0]


def issue(office: Office, **fields: Any) -> str:
    return text_of(office.post(add_to(IngestKey), answered="1", **fields))


def test_issuing_shows_the_key_once_and_tells_who_did_it(office: Office) -> None:
    make_instrument("EURUSD")
    page = issue(office, name="desk", symbols="eurusd")
    (secret,) = re.findall(r'id="secret" value="([^"]+)"', page)
    key = IngestKey.objects.get()
    assert is_well_formed(secret, LEAD)
    assert (key.name, key.symbols, secret.startswith(key.prefix)) == ("desk", "EURUSD", True)
    assert logged(key) == [("boss", "Issued.")]
    assert published() == [(EventKind.INGEST_KEY_ISSUED, "boss")]
    assert secret not in text_of(office.get(change(key)))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "This field is required."),
        *((name, "letters, numbers, underscores or hyphens") for name in ("two words", "a:b", "café")),
        ("n" * 31, "at most 30 characters"),
    ],
)
def test_name_that_no_source_can_have_is_refused_in_words(office: Office, name: str, why: str) -> None:
    assert why in issue(office, name=name)
    assert not IngestKey.objects.exists()


def test_unknown_symbol_is_refused_in_words(office: Office, key: IngestKey) -> None:
    told = "There is no instrument NOPE."
    assert told in issue(office, name="desk", symbols="NOPE")
    assert told in text_of(office.post(change(key), symbols="nope"))


def test_revoking_asks_first_and_tells_all_processes_and_no_key_is_deleted(
    office: Office, key: IngestKey
) -> None:
    asked = text_of(office.post(address(key, "revoke", key.pk)))
    assert "cannot be undone" in asked
    assert IngestKey.objects.get().revoked_at is None
    office.post(address(key, "revoke", key.pk), answered="1")
    assert IngestKey.objects.get().revoked_at is not None
    assert logged(key) == [("boss", "Revoked.")]
    assert published()[-1] == (EventKind.INGEST_KEY_REVOKED, "boss")
    office.answer("revoke_chosen", key, issue_ingest_key("bridge", by="test")[0])
    assert not IngestKey.objects.filter(revoked_at=None).exists()
    assert office.post(address(key, "delete", key.pk), post="yes").status_code == 403
    assert IngestKey.objects.count() == 2


def test_symbols_of_a_key_can_be_changed_and_its_name_cannot(office: Office, key: IngestKey) -> None:
    make_instrument("XAUUSD")
    office.post(change(key), symbols="xauusd", name="other")
    key.refresh_from_db()
    assert (key.name, key.symbols) == ("desk", "XAUUSD")
    assert published()[-1] == (EventKind.INGEST_KEY_CHANGED, "boss")
