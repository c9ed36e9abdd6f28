"""A copy is proved where there is nothing but the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archive.folding.parquet import candle_schema, digest, tick_schema, write_table
from archive.layout import candles_path, manifest_path, ticks_path
from archive.manifests import ArchiveManifest, LedgerAt, ManifestFile, encoded
from core.times import moment
from tests.archive.keeping import DAY, DAY_MS
from tests.programs.commands import manage

pytestmark = pytest.mark.served

SYMBOL = "EURUSD"
TICK = {"seq": 1, "epoch": "e", "time": moment(DAY_MS + 1), "bid": 1.08, "ask": 1.0801, "volume": 1.0}
PRICES = dict.fromkeys(("open", "high", "low", "close"), 1.08)
ASKS = dict.fromkeys(("ask_high", "ask_low"), 1.0801)


def table(schema: pa.Schema, **row: Any) -> pa.Table:
    plain = [(each.name, pa.string() if pa.types.is_dictionary(each.type) else each.type) for each in schema]
    return pa.Table.from_pylist([row], schema=pa.schema(plain)).cast(schema)


def put(root: Path, path: str, kind: str, rows: pa.Table, **about: Any) -> ManifestFile:
    (root / path).parent.mkdir(parents=True)
    write_table(root / path, rows, {"version": 1, "digits": 5, **about})
    size = (root / path).stat().st_size
    return ManifestFile(path, kind, SYMBOL, digest(root / path), size, rows.num_rows, ["kraken"])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """An exported day of one tick, on a disk that nobody may write to."""
    root = tmp_path / "copy"
    minute = {"time": moment(DAY_MS), **PRICES, "volume": 1.0, **ASKS, "basis": "bid", "source": "kraken"}
    candles = put(root, candles_path(SYMBOL, DAY), "candles", table(candle_schema(), **minute))
    rows = table(tick_schema(), **TICK, side=0, source="kraken")
    facts = {"candle_price": ["bid"], "before": None, "minutes": []}
    ticks = put(root, ticks_path(SYMBOL, DAY), "ticks", rows, **facts)
    manifest = ArchiveManifest(str(DAY), 1, "", True, [], LedgerAt(0, ""), [candles, ticks])
    (root / manifest_path(DAY)).parent.mkdir()
    (root / manifest_path(DAY)).write_bytes(encoded(manifest))
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return root


@pytest.mark.parametrize("option", ["--folder={}", "--folder {}"])
def test_a_copy_is_proved_where_nothing_is_installed(copy: Path, tmp_path: Path, option: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    words = option.format(copy).split()
    proved = manage(tmp_path / "var", "verify_archive", *words, DATABASE_URL="", DEMO="")
    says = f"{DAY} holds: 2 files, 1 ticks, 1 minutes, 0 signals proved.\n"
    assert (proved.returncode, proved.stdout, proved.stderr) == (0, says, "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_archive_itself_is_not_proved_where_nothing_is_kept(tmp_path: Path) -> None:
    refused = manage(tmp_path / "var", "verify_archive")
    assert "Nothing is stored in" in refused.stderr
    assert list(tmp_path.iterdir()) == []
