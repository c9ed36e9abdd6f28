"""Parquet files of ticks and candles. pyarrow is an extra, so it is imported where it is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.plain_json import encode

from .rows import SymbolDay, TickRows

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"tickwire"
"""The key under which a file says in JSON what its columns do not."""
BLOCK = 1 << 20


def tick_schema() -> pa.Schema:
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    prices = [(column, pa.float64()) for column in ("bid", "ask", "volume")]
    time = ("time", pa.timestamp("ms", tz="UTC"))
    first = [("seq", pa.int64()), ("epoch", name), time]
    # By which signals are judged; files of before do not have them.
    judged = [
        ("accepted_ms", pa.int64()),
        ("feed", name),
        ("settled", pa.bool_()),
        ("unsettled_ms", pa.int64()),
    ]
    return pa.schema([*first, *prices, ("side", pa.int8()), ("source", name), *judged])


def candle_schema() -> pa.Schema:
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    columns = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")
    prices = [(column, pa.float64()) for column in columns]
    return pa.schema([("time", pa.timestamp("ms", tz="UTC")), *prices, ("basis", name), ("source", name)])


class TickWriter:
    """One file, which is written group by group."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._schema = tick_schema()
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, day: SymbolDay, rows: TickRows) -> None:
        import pyarrow as pa

        def named(numbers: Sequence[int], names: dict[str, int]) -> pa.Array:
            return pa.DictionaryArray.from_arrays(
                pa.array(numbers, pa.int32()), pa.array(list(names), pa.string())
            )

        columns = [
            pa.array(rows.seq, pa.int64()),
            named(rows.epoch, day.epochs.known),
            pa.array(rows.time_ms, pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
            *(pa.array(values, pa.float64()) for values in (rows.bid, rows.ask, rows.volume)),
            pa.array(rows.side, pa.int8()),
            named(rows.source, day.sources.known),
            pa.array([accepted_ms or None for accepted_ms in rows.accepted_ms], pa.int64()),
            named(rows.feed, day.feeds.known),
            pa.array(map(bool, rows.settled), pa.bool_()),
            pa.array(rows.unsettled_ms, pa.int64()),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self, metadata: dict[str, Any]) -> None:
        self._writer.add_key_value_metadata({METADATA: encode(metadata)})
        self._writer.close()


def write_table(path: Path, table: pa.Table, metadata: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table.replace_schema_metadata({METADATA: encode(metadata)}), path, compression="zstd")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_blocks(path: Path, blocks: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)
