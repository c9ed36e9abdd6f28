from __future__ import annotations

import pytest

from tests.archive.test_killed import installation, keep_killing
from tests.reliability.conftest import rows
from tests.reliability.services.processes import Installation

__all__ = ["installation", "rows"]


@pytest.mark.usefixtures("rows")
def test_a_server_killed_again_and_again_keeps_each_tick_that_the_database_knows(
    installation: Installation,  # noqa: F811
) -> None:
    keep_killing(installation, 30)
