"""What it costs the database that keys are used, and that the newest use stands there soon."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from accounts import usage
from accounts.models import ApiKey
from accounts.usage import WRITTEN_AT_ONCE, LastUse
from core.threads import in_thread
from tests.databases.queries import count_queries
from tests.factories import NOON, make_account

pytestmark = pytest.mark.services

LOOKS_EVERY_S = 15


class Process:
    """One that looks every 15 seconds at what was used."""

    passed_s = 0.0

    def __init__(self) -> None:
        self.used = LastUse(ApiKey)

    async def go(self, keys: list[int]) -> int:
        """All are used, and then it looks; returns how many statements that took."""
        for key in keys:
            self.used.at[key] = NOON.timestamp() + Process.passed_s
        with count_queries() as asked:
            await self.used.record()
        return len([sql for sql in asked if sql.startswith("UPDATE")])


@pytest.fixture(autouse=True)
def passing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "passed_s", 0.0)
    monkeypatch.setattr(usage, "time", SimpleNamespace(monotonic=lambda: Process.passed_s))


@pytest.fixture
def keys(transactional_db: None) -> list[int]:
    account = make_account()
    made = ApiKey.objects.bulk_create(
        ApiKey(account=account, prefix=f"tw_{number}", digest=f"{number:064x}")
        for number in range(2 * WRITTEN_AT_ONCE + 1)
    )
    return [key.pk for key in made]


def uses() -> set[float | None]:
    found = ApiKey.objects.values_list("last_used_at", flat=True)
    return {None if at is None else (at - NOON).total_seconds() for at in found}


async def test_many_keys_are_few_statements_each_time_they_are_due(keys: list[int]) -> None:
    process, statements = Process(), []
    for _ in range(7):
        statements.append(await process.go(keys))
        Process.passed_s += LOOKS_EVERY_S
    assert statements == [3, 0, 0, 3, 0, 0, 3]


async def test_last_use_of_all_stands_there_within_a_minute(keys: list[int]) -> None:
    process = Process()
    for _ in range(3):
        await process.go(keys)
        Process.passed_s += LOOKS_EVERY_S
    assert await in_thread(uses) == {0.0}

    await process.go([])
    assert await in_thread(uses) == {2.0 * LOOKS_EVERY_S}


async def test_what_another_process_wrote_lately_is_close_enough(keys: list[int]) -> None:
    await Process().go(keys)
    Process.passed_s = 14
    await Process().go(keys)
    assert await in_thread(uses) == {0.0}

    Process.passed_s = 16
    await Process().go(keys)
    assert await in_thread(uses) == {16.0}


async def test_it_never_goes_back(keys: list[int]) -> None:
    """Of two that are due at once one was used long before the other, and elsewhere since."""
    process = Process()
    process.used.at[keys[0]] = NOON.timestamp()
    Process.passed_s = 20
    await Process().go(keys[:1])
    Process.passed_s = 39
    await process.go(keys[1:])
    assert await in_thread(uses) == {20.0, 39.0}
