from __future__ import annotations

import signal

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.restarts.test_shutdown import stop_with_all_under_way
from tests.reliability.services.processes import Installation

SOCKETS, EXIT_WITHIN_S = 200, 30.0
pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("35", f"exit within {EXIT_WITHIN_S:g} s")
@pytest.mark.parametrize("kind", ["embedded", "scaled"])
def test_a_process_with_open_streams_and_requests_exits_in_time(
    kind: str, request: pytest.FixtureRequest, tell: Tell
) -> None:
    installation: Installation = request.getfixturevalue(kind)
    codes, _, took_s = stop_with_all_under_way(installation, signal.SIGTERM, SOCKETS)
    tell(f"{kind}: exited after {took_s:.1f} s")
    assert codes == {1012: SOCKETS}
    assert took_s <= EXIT_WITHIN_S
