from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hubs import Direct, House, Line


@pytest.fixture(params=[Line, Direct])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    house = House(request.param)
    yield house
    house.clear()
