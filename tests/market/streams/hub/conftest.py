from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hubs import HubCase, KernelConnection, RecordedConnection


@pytest.fixture(params=[RecordedConnection, KernelConnection])
def case(request: pytest.FixtureRequest) -> Iterator[HubCase]:
    case = HubCase(request.param)
    yield case
    case.clear()
