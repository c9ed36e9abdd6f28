from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.signals.test_kill import check_lives

LAST = 100
pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("5", "no acknowledged signal lost, none duplicated, the ledger intact")
@pytest.mark.parametrize("kind", ["embedded", "scaled"])
def test_no_signal_is_lost_at_any_of_a_hundred_writes(
    kind: str, request: pytest.FixtureRequest, tell: Tell
) -> None:
    assert check_lives(request.getfixturevalue(kind), "AGAIN", LAST, tell).acts > LAST
