"""An address that moves led to a standby for a while: what connected then comes back to the primary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from psycopg_pool import ConnectionPool

from config.environment import leave_standby
from tests.patience import PATIENCE_S
from tests.reliability.services.cable import Cable
from tests.reliability.services.postgres_pair import PostgresPair

pytestmark = pytest.mark.row("8", "no connection stays on a read-only standby")


def led_to_standby(pool: ConnectionPool[Any]) -> bool:
    with pool.connection() as connection:
        (is_standby,) = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    return bool(is_standby)


def test_a_connection_to_a_standby_is_dropped_after_one_use(tmp_path: Path) -> None:
    pair = PostgresPair(tmp_path)
    cable = Cable(pair.ports[1])
    url = f"postgresql://postgres@127.0.0.1:{cable.port}/postgres"
    with (
        pair.running(),
        ConnectionPool(url, min_size=1, max_size=1, reset=leave_standby, timeout=PATIENCE_S) as pool,
        ConnectionPool(url, min_size=1, max_size=1, timeout=PATIENCE_S) as control,
    ):
        assert led_to_standby(pool)
        assert led_to_standby(control)
        cable.to = pair.ports[0]
        # One may have been made before the address moved.
        led_to_standby(pool)
        assert not led_to_standby(pool)
        assert led_to_standby(control)
    cable.close()
