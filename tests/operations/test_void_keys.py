from __future__ import annotations

from typing import Any

import pytest

from market.push.keys import issue_ingest_key
from operations.void_keys import check_void_keys
from tests.factories import make_account, make_key

from .doctor.diagnoses import faults, only_fault

pytestmark = pytest.mark.django_db


def test_keys_of_a_pepper_that_is_not_set_are_told(settings: Any) -> None:
    settings.KEY_PEPPER = "the first"
    make_key(make_account())
    issue_ingest_key("desk", by="test")
    assert faults(check_void_keys()) == []

    settings.KEY_PEPPER = "the second"
    level, says = only_fault(check_void_keys())
    assert level == "warn"
    assert says.startswith("1 API keys, 1 ingest keys open nothing, because")

    settings.KEY_PEPPER_FALLBACKS = ["the first"]
    assert faults(check_void_keys()) == []


def test_a_key_that_does_not_name_its_pepper_is_not_judged() -> None:
    make_key(make_account(), pepper_name="")
    assert faults(check_void_keys()) == []
