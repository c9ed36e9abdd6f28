"""As in the gate, with five times as many examples."""

from __future__ import annotations

import pytest

from tests.contract.openapi.test_schemathesis import market as market
from tests.contract.openapi.test_schemathesis import scenarios as scenarios
from tests.contract.openapi.test_schemathesis import test_every_kind_of_answer_was_met as test_every_kind
from tests.contract.openapi.test_schemathesis import test_server_keeps_to_its_document as test_document

__all__ = ["test_document", "test_every_kind"]


@pytest.fixture(scope="module")
def examples() -> int:
    return 40
