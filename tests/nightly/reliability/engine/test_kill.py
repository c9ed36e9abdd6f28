from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.engine.test_kill import kill_again_and_again
from tests.reliability.services.processes import Installation

pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted")
def test_a_server_that_is_killed_six_times_keeps_every_tick(embedded: Installation, tell: Tell) -> None:
    kill_again_and_again(embedded, tell, rounds=6)
