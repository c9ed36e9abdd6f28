from __future__ import annotations

import pytest

from tests.reliability import fixtures


def pytest_configure(config: pytest.Config) -> None:
    fixtures.plug_in(config)


@pytest.fixture(autouse=True, scope="module")
def _as_shipped(prompt: None, rows: None) -> None:
    """What is measured here is measured with the deadlines of the product."""
