"""What analysts do with a file: download it, or read only the parts that they need."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow
import pytest
import time_machine
from pyarrow import parquet

from tests.client import Api
from tests.factories import NOON

from .stored import store_day

DAY = "2026-11-17"
TICKS = f"ticks/EURUSD/{DAY}.parquet"
ROWS = 200_000


@pytest.fixture(scope="module", autouse=True)
def noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture(scope="module", autouse=True)
def stored(root: Path) -> bytes:
    table = pyarrow.table(
        {
            "seq": range(ROWS),
            "bid": [1 + n / ROWS for n in range(ROWS)],
            "note": [str(n) for n in range(ROWS)],
        }
    )
    made = io.BytesIO()
    parquet.write_table(table, made, compression="zstd", row_group_size=20_000)
    store_day(root, DAY, contents={TICKS: made.getvalue()})
    return made.getvalue()


def test_downloaded_file_is_read_by_duckdb_and_polars(entitled: Api, tmp_path: Path) -> None:
    (file,) = entitled.ask("/api/archive?kind=ticks&symbol=EURUSD").json()["items"]
    copy = tmp_path / "ticks.parquet"
    copy.write_bytes(entitled.ask(f"/api/archive/{file['path']}").content)
    with duckdb.connect() as database:
        asked = database.execute("SELECT count(*), max(seq) FROM read_parquet(?)", [str(copy)])
        assert asked.fetchall() == [(ROWS, ROWS - 1)]
    assert polars.read_parquet(copy)["seq"].sum() == ROWS * (ROWS - 1) // 2


class RemoteFile(io.RawIOBase):
    """Reads what it is asked for, by ranges."""

    def __init__(self, api: Api, path: str) -> None:
        self._api, self._url, self._at = api, f"/api/archive/{path}", 0
        self._size = int(api.ask(self._url, method="HEAD").headers["Content-Length"])
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        stop = min(self._at + len(buffer), self._size)
        if stop <= self._at:
            return 0
        part = self._api.ask(self._url, headers={"Range": f"bytes={self._at}-{stop - 1}"})
        assert part.status_code == 206
        buffer[: len(part.content)] = part.content
        self._at = stop
        self.read_bytes += len(part.content)
        return len(part.content)


def test_one_column_of_one_group_costs_a_part_of_the_file(entitled: Api, stored: bytes) -> None:
    remote = RemoteFile(entitled, TICKS)
    with parquet.ParquetFile(remote) as file:
        group = file.read_row_group(3, columns=["seq"])
    assert group["seq"].to_pylist() == list(range(60_000, 80_000))
    assert remote.read_bytes < len(stored) / 4
