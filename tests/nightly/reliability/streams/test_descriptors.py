from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.streams.test_descriptors import check

pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("63, sockets' numbers", "no frame sent to another socket, nothing left behind")
def test_of_a_hundred_thousand_frames_none_is_sent_to_a_reused_number(
    embedded: Installation, tell: Tell, seed: int
) -> None:
    check(embedded, tell, seed, 100_000)
