from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from archive.manifests import decoded
from tests.archive.keeping import DAY_MS, KeptEngine, fold, journal_of, store_of
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE_MS = 60_000


async def test_a_day_of_ticks_becomes_a_file(folder: Path) -> None:
    from core.threads import in_thread

    await in_thread(make_instrument)
    async with KeptEngine(folder) as kept:
        for n in range(300):
            kept.tick(1.08 + n % 7 / 1e5, DAY_MS + 3_600_000 + n * 1000)
        kept.pass_time(DAY_MS + 3_600_000 + 400_000)
        await kept.write()
        kept.tick(1.09, DAY_MS + 86_400_000 + 5000)
        kept.pass_time(DAY_MS + 86_400_000 + 10_000)
        await kept.write()
    assert len(journal_of(folder).segments()) == 2
    await in_thread(fold, folder)
    store = store_of(folder)
    print(store.listing())
    m = decoded(store.read("manifests/2026-11-18.json"))
    print(store.read("manifests/2026-11-18.json").decode())
    t = pq.read_table(store.root / "ticks/EURUSD/2026-11-18.parquet")
    print(t.schema, t.num_rows, t.slice(0, 3).to_pylist())
    print(len(journal_of(folder).segments()))
    assert 0
