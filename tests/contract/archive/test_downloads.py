"""Many readers, slow ones and ones that leave; and a store that is not the disk, or is away."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from archive.index import archive_index
from archive.stores import S3Store
from archive.views import MOST_OF_ACCOUNT, downloads
from tests.archive.stores.buckets import store_on_loopback
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import make_instrument
from tests.patience import wait_until

from .stored import store_day

DAY = "2026-11-17"
TICKS = f"ticks/EURUSD/{DAY}.parquet"
URL = f"/api/archive/{TICKS}"
# More than the buffers of both ends hold.
SIZE = 20_000_000


@pytest.fixture(scope="module")
def body(root: Path) -> bytes:
    content = bytes(range(250)) * (SIZE // 250)
    store_day(root, DAY, contents={TICKS: content})
    return content


def open_files() -> list[str]:
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return [path for link in links if os.path.exists(link) and (path := os.readlink(link)).endswith(TICKS)]


def begin(api: Api) -> socket.socket:
    """A download of which nothing is read."""
    connected = socket.create_connection((str(api.base_url.host), int(api.base_url.port or 0)))
    connected.sendall(f"GET {URL} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {api.key}\r\n\r\n".encode())
    return connected


def test_slow_readers_hold_nobody_up_and_nothing_stays_of_those_who_leave(entitled: Api, body: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(begin(entitled))
        wait_until(lambda: len(open_files()) == 10)
        assert len(downloads) == 10
        # The others are answered meanwhile, and so is another download.
        assert entitled.ask("/api/symbols").status_code == 200
        assert entitled.ask(URL).content == body
    wait_until(lambda: not len(downloads))
    wait_until(lambda: not open_files())


def test_one_account_may_have_so_many_downloads_at_once(entitled: Api, body: bytes) -> None:
    with ExitStack() as stack:
        began = [stack.enter_context(begin(entitled)) for _ in range(3 * MOST_OF_ACCOUNT)]
        heads = [connected.recv(15, socket.MSG_WAITALL) for connected in began]
        assert heads.count(b"HTTP/1.1 200 OK") == MOST_OF_ACCOUNT
        assert heads.count(b"HTTP/1.1 503 Se") == 2 * MOST_OF_ACCOUNT
        response = entitled.ask(URL)
        said = refusal(response, 503, "overloaded")
        assert said == f"{MOST_OF_ACCOUNT} downloads of your account are under way. Wait until one has ended."
        assert response.headers["Retry-After"] == "5"
        assert entitled.ask("/api/archive").status_code == 200
    wait_until(lambda: not len(downloads))
    assert entitled.ask(URL).status_code == 200


def test_head_and_304_are_no_downloads(entitled: Api, body: bytes) -> None:
    tag = entitled.ask(URL, method="HEAD").headers["ETag"]
    assert entitled.ask(URL, headers={"If-None-Match": tag}).status_code == 304
    assert not len(downloads)
    assert open_files() == []


@pytest.fixture
def in_bucket(settings: Any, root: Path, body: bytes) -> Iterator[None]:
    """What the folder holds, in a bucket."""
    with store_on_loopback() as bucket:
        store = S3Store(bucket)
        for path in (f"manifests/{DAY}.json", TICKS):
            store.put(path, root / path)
        settings.ARCHIVE_S3_URL = (bucket.name, bucket.prefix)
        settings.ARCHIVE_S3_ENDPOINT, settings.ARCHIVE_S3_REGION = bucket.endpoint, bucket.region
        settings.ARCHIVE_S3_KEY_ID, settings.ARCHIVE_S3_SECRET = bucket.key_id, bucket.secret
        settings.ARCHIVE_DIR = root / "nothing"
        archive_index.forget()
        yield


@pytest.mark.usefixtures("in_bucket")
def test_bucket_serves_the_same_as_a_disk(entitled: Api, body: bytes) -> None:
    make_instrument("EURUSD")
    paths = [item["path"] for item in entitled.ask("/api/archive?kind=ticks").json()["items"]]
    assert paths == [TICKS]
    assert entitled.ask(URL).content == body
    part = entitled.ask(URL, headers={"Range": "bytes=1048570-3000000"})
    assert (part.status_code, part.content) == (206, body[1048570:3000001])
    assert entitled.ask(URL, method="HEAD").headers["Content-Length"] == str(SIZE)
    refusal(entitled.ask(f"/api/archive/candles/1m/EURUSD/{DAY}.parquet"), 404, "not_found")


def test_download_that_broke_before_it_began_counts_no_more(
    entitled: Api, body: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("archive.views.begin", lambda *_, **__: 1 // 0)
    refusal(entitled.ask(URL), 500, "internal_error")
    # What is logged holds on to all that was under way.
    assert any(record.exc_info for record in caplog.records)
    assert not len(downloads)


def test_store_that_is_away_is_a_503_and_nothing_else_is(
    entitled: Api, body: bytes, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert entitled.ask(URL, method="HEAD").status_code == 200
    settings.ARCHIVE_S3_URL, settings.ARCHIVE_S3_ENDPOINT = ("ticks", ""), "http://127.0.0.1:9"
    settings.ARCHIVE_S3_KEY_ID, settings.ARCHIVE_S3_SECRET = "id", "secret"
    # What is known goes on being listed.
    archive_index.forget()
    response = entitled.ask(URL)
    refusal(response, 503, "overloaded")
    assert response.headers["Retry-After"] == "5"
    assert entitled.ask("/api/archive").json()["count"] == 3
    assert "The archive cannot be listed: s3://ticks could not be asked" in caplog.text
    assert "A file of the archive cannot be read: s3://ticks could not be asked" in caplog.text
    assert entitled.ask("/api/symbols").status_code == 200
