from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.stream_services import StreamService
from tests.reliability.streams.test_hostile_frames import PATHS, check, service

EXAMPLES = 6_000
__all__ = ["service"]


@pytest.mark.usefixtures("rows")
@pytest.mark.row("17", "no wrong code, no unhandled exception")
@pytest.mark.parametrize("path", PATHS)
def test_thousands_of_random_messages_get_a_reply_or_an_error(
    service: StreamService,  # noqa: F811 - the fixture
    path: str,
    seed: int,
    tell: Tell,
) -> None:
    check(service, path, seed, EXAMPLES, tell)
