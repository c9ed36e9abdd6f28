"""A benchmark that nobody runs for a while still runs: on a fresh installation, and fairly."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.times import MINUTE_MS
from market.models import Candle
from market.store.candle_rows import write_candles
from tests.factories import make_instrument
from tests.nightly.benchmarks.engine.__main__ import run
from tests.nightly.benchmarks.engine.candles_db_run import START_MS, make_candle, write_plainly
from tests.nightly.benchmarks.history.walk import walk_while_candles_close
from tests.nightly.benchmarks.rest.__main__ import prepare
from tests.nightly.benchmarks.units.following import follow
from tests.nightly.benchmarks.units.visits import visits
from tests.programs.running import environment


def test_database_of_the_rest_benchmark_is_made_on_a_fresh_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for secret in ("SECRET_KEY", "KEY_PEPPER"):
        monkeypatch.delenv(secret, raising=False)
    settings = environment(tmp_path, DEMO="0", REDIS_URL="", DJANGO_SETTINGS_MODULE="config.settings")
    facts = prepare(settings, 3)
    assert facts.key.startswith("tw_live_")
    assert facts.pepper


def test_walk_while_candles_close_is_what_is_exported_afterwards(tmp_path: Path) -> None:
    walked = walk_while_candles_close(tmp_path, 18_000, 2_000, limit=700)
    assert walked.bars == 20_000
    assert walked.is_equal


def test_engine_under_load_writes_all_that_it_took() -> None:
    found = run(2, 0, 1, {"DATABASE_URL": "", "REDIS_URL": ""})
    assert found.written == found.pushed > 0


@pytest.mark.django_db
def test_both_ways_of_writing_candles_come_to_the_same() -> None:
    instrument = make_instrument()
    rows = [
        (instrument.id, "1m", make_candle(seed, START_MS + place * MINUTE_MS), "bid")
        # The second minute twice, with other prices.
        for seed, place in ((1, 0), (2, 1), (3, 1))
    ]
    written = []
    for write in (write_candles, write_plainly):
        Candle.objects.all().delete()
        for row in rows:
            write([row])
        written.append(
            list(Candle.objects.order_by("opened_at").values_list("opened_at", "open", "close", "source"))
        )
    assert written[0] == written[1]
    assert len(written[0]) == 2


def test_quotes_and_streams_are_counted_where_they_cost() -> None:
    visited = visits(quotes=50, streams=3, rest_s=1)

    assert [round(counts.scripts) for counts in (visited.alone, visited.begun)] == [1, 1]
    assert 0 < visited.together.scripts <= 1.1
    assert visited.at_rest.queries > 0
    assert visited.alone.queries < 0.5


def test_ticks_are_counted_where_they_cost() -> None:
    followed = follow(webs=1, per_second=200, seconds=1)

    assert followed.used.batches > 0
    assert followed.used.redis_bytes > 0
    assert followed.connections >= 1
