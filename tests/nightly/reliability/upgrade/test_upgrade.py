from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.upgrade.upgrading import Service, Upgrade, over, upgraded

pytestmark = pytest.mark.usefixtures("rows")


async def there_and_back(upgrade: Upgrade, service: Service) -> None:
    await upgraded(upgrade, service)
    await upgrade.do(service.put_engine, upgrade.here)
    await upgrade.do(upgrade.check_ledger)
    # On the database of this code.
    await upgrade.do(upgrade.put_web, 0, upgrade.released)
    await upgrade.do(upgrade.check_keys)
    await upgrade.do(upgrade.put_web, 1, upgrade.released)
    await upgrade.do(service.put_engine, upgrade.released)


@pytest.mark.row("upgrade", "nothing acknowledged lost, no connection closed without notice")
async def test_an_upgrade_and_its_rollback_lose_nothing(tmp_path: Path, tell: Tell) -> None:
    traffic = await over(there_and_back, tmp_path, tell)

    # From old to new, between new ones, and from new to old.
    assert all(client.sessions > 3 for client in traffic.streams)
