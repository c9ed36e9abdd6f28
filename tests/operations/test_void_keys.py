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
    account = make_account()
    make_key(account)
    # One that does not name its pepper is not judged.
    make_key(account, pepper_name="")
    issue_ingest_key("desk", by="test")
    assert faults(check_void_keys()) == []

    settings.KEY_PEPPER = "the second"
    level, says = only_fault(check_void_keys())
    assert level == "warn"
    assert says.startswith("1 API keys, 1 ingest keys open nothing, because")

    settings.KEY_PEPPER_FALLBACKS = ["the first"]
    assert faults(check_void_keys()) == []
