from __future__ import annotations

import pytest

from tests.reliability import fixtures


def pytest_configure(config: pytest.Config) -> None:
    fixtures.plug_in(config)
