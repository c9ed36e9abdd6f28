from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming
from tests.reliability.streams.test_hostile_frames import PATHS, SYMBOL, check_random

EXAMPLES = 6_000
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running


@pytest.mark.row("17", "no wrong code, no unhandled exception")
@pytest.mark.parametrize("path", PATHS)
def test_thousands_of_random_messages_get_a_reply_or_an_error(
    service: StreamService, path: str, seed: int, tell: Tell
) -> None:
    server = service.servers[0]
    check_random(server, service.make_key(), path, seed, EXAMPLES, tell)
    assert "Traceback" not in server.log.read_text()
