from __future__ import annotations

import random
from pathlib import Path

import pytest

from archive.proving import verify_day
from core.threads import in_thread
from tests.archive.keeping import DAY, DAY_MS, KeptEngine, fold, store_of
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db(transaction=True)


async def test_try(folder: Path) -> None:
    await in_thread(make_instrument)
    rng = random.Random(1)
    async with KeptEngine(folder) as kept:
        at = DAY_MS + 3_600_000
        for n in range(3000):
            at += (
                rng.choice([100, 900, 5000, 20_000, 130_000]) if n % 50 == 0 else rng.choice([100, 900, 2500])
            )
            kept.pass_time(at - 10)
            kept.tick(round(1.08 + rng.randrange(-40, 40) / 1e5, 5), at)
            if n % 200 == 0:
                await kept.write()
        kept.tick(1.09, DAY_MS + 86_400_000 + 5000)
        await kept.write()
    await in_thread(fold, folder)
    v = await in_thread(verify_day, store_of(folder), DAY)
    print(v)
    assert 0
