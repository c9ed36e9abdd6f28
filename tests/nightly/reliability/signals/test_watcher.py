from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.signals.test_watcher import kill_again_and_again

pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("5", "every signal closes as it would have without a kill, and only once")
def test_each_signal_closes_once_over_six_kills(embedded: Installation, tell: Tell, seed: int) -> None:
    kill_again_and_again(embedded, tell, seed, rounds=6)
