"""Files of the archive: whole and checked, or not there; what came before is not sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tickwire import ApiError, AsyncClient, Client, DownloadError

from tests.patience import PATIENCE_S

from .keeping import BUSY, CUT_SHORT, HUNG_UP, Keeper, keeping

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("waits")]

KEY = "tw_live_any"
DAY = "ticks/EURUSD/2026-11-20.parquet"
CONTENT = Random(17).randbytes(3_000_000)
Fetch = Callable[[str, Path], Path]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with keeping(Keeper()) as kept:
        kept.files[DAY] = CONTENT
        yield kept


@pytest.fixture(params=["Client", "AsyncClient"])
def download(request: pytest.FixtureRequest, keeper: Keeper) -> Fetch:
    def waiting(path: str, to: Path) -> Path:
        with Client(KEY, keeper.url) as client:
            return client.download(path, to)

    def asynchronously(path: str, to: Path) -> Path:
        async def fetch() -> Path:
            async with AsyncClient(KEY, keeper.url) as client:
                return await client.download(path, to)

        return asyncio.run(asyncio.wait_for(fetch(), PATIENCE_S))

    return waiting if request.param == "Client" else asynchronously


def ranges(keeper: Keeper) -> list[str | None]:
    return [request.headers.get("range") for request in keeper.asked]


def test_listed_file_is_downloaded_into_a_folder(keeper: Keeper, tmp_path: Path) -> None:
    with Client(KEY, keeper.url) as client:
        (file,) = client.archive(kind="ticks", symbol="EURUSD")
        made = client.download(file["path"], tmp_path)
    assert made == tmp_path / "2026-11-20.parquet"
    assert made.read_bytes() == CONTENT
    assert keeper.asked[0].query == {"kind": "ticks", "symbol": "EURUSD"}
    assert list(tmp_path.iterdir()) == [made]


def test_download_goes_on_where_it_ended(
    keeper: Keeper, download: Fetch, tmp_path: Path, waits: list[float]
) -> None:
    keeper.mishaps = {0: CUT_SHORT, 1: HUNG_UP, 2: CUT_SHORT}
    made = download(DAY, tmp_path / "day.parquet")
    assert (made.name, made.read_bytes()) == ("day.parquet", CONTENT)
    assert ranges(keeper) == [None, "bytes=1800000-", "bytes=1800000-", "bytes=2520000-"]
    assert all(request.headers["if-range"] for request in keeper.asked[1:])
    # An earlier program ended there, and an allowance is used up.
    waits.clear()
    (tmp_path / "2026-11-20.parquet.part").write_bytes(CONTENT[:1_000])
    keeper.mishaps = {4: BUSY}
    assert download(DAY, tmp_path).read_bytes() == CONTENT
    assert (ranges(keeper)[4:], waits) == (["bytes=1000-"] * 2, [1])


@pytest.mark.parametrize("part", [b"of another file", CONTENT, CONTENT + b"more"])
def test_part_that_is_of_no_use_is_given_up(
    keeper: Keeper, download: Fetch, tmp_path: Path, part: bytes
) -> None:
    (tmp_path / "2026-11-20.parquet.part").write_bytes(part)
    assert download(DAY, tmp_path).read_bytes() == CONTENT
    assert ranges(keeper) == [f"bytes={len(part)}-", None]


def test_file_that_changed_meanwhile_is_had_as_a_whole(
    keeper: Keeper, download: Fetch, tmp_path: Path
) -> None:
    class Changing(dict[str, bytes]):
        def __getitem__(self, path: str) -> bytes:
            return CONTENT if len(keeper.asked) == 1 else CONTENT[::-1]

    keeper.files, keeper.mishaps = Changing({DAY: b""}), {0: CUT_SHORT}
    assert download(DAY, tmp_path).read_bytes() == CONTENT[::-1]


def test_file_with_another_hash_is_not_left_behind(
    keeper: Keeper, download: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = keeper.answer
    monkeypatch.setattr(keeper, "answer", lambda asked: whole(asked)._replace(body=CONTENT[:-1] + b"?"))
    with pytest.raises(DownloadError, match="but should have"):
        download(DAY, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_file_is_refused_and_nothing_is_left(download: Fetch, tmp_path: Path) -> None:
    with pytest.raises(ApiError) as refused:
        download("ticks/EURUSD/2026-11-21.parquet", tmp_path)
    assert refused.value.code == "not_found"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../limits", "ticks/..", "", "/etc/passwd"])
def test_what_is_no_path_of_the_archive_is_not_asked_for(keeper: Keeper, tmp_path: Path, path: str) -> None:
    with Client(KEY, keeper.url) as client, pytest.raises(ValueError, match="not a path of the archive"):
        client.download(path, tmp_path)
    assert keeper.asked == []
