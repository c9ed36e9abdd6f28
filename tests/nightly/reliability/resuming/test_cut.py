from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.resuming.ledger_run import SYMBOLS, Run
from tests.reliability.resuming.test_cut import check
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import streaming

pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("12–14", "no gaps, no duplicates, every client recovers")
@pytest.mark.parametrize("kind", ["embedded", "scaled"])
def test_every_message_arrives_once_over_sixty_cuts_of_each_client(
    kind: str, request: pytest.FixtureRequest, seed: int, tell: Tell
) -> None:
    installation: Installation = request.getfixturevalue(kind)
    with streaming(installation, 1 + (kind == "scaled"), SYMBOLS) as service:
        check(Run(service, seed), 60, tell)
