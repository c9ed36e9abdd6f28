from __future__ import annotations

import asyncio
import hashlib
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from archive.stores import S3Bucket, S3Store, StoreFault, archive_store
from config.environment.kinds import read_s3_url
from tests.local_http import LocalHttp, read_request, whole_answer

from .buckets import client_of, store_on_loopback

TICKS = "ticks/EURUSD/2026-11-17.parquet"


@pytest.fixture
def bucket() -> Iterator[S3Bucket]:
    with store_on_loopback() as found:
        yield found


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "made"
    path.write_bytes(b"x" * 1_500_000)
    return path


def test_names_begin_with_the_prefix(bucket: S3Bucket, local: Path) -> None:
    S3Store(bucket).put(TICKS, local)
    S3Store(bucket._replace(prefix="")).put(TICKS, local)
    found = client_of(bucket).list_objects_v2(Bucket=bucket.name)["Contents"]
    assert [each["Key"] for each in found] == [TICKS, f"wire/main/{TICKS}"]
    assert S3Store(bucket).listing() == [TICKS]


def test_file_that_is_replaced_while_it_is_read_is_a_fault(bucket: S3Bucket, local: Path) -> None:
    store = S3Store(bucket)
    store.put(TICKS, local)
    blocks = store.open(TICKS)
    next(blocks)
    local.write_bytes(b"y" * 1_500_000)
    store.put(TICKS, local)
    with pytest.raises(StoreFault, match="PreconditionFailed"):
        next(blocks)


def test_missing_bucket_and_dead_store_are_faults_in_a_sentence(bucket: S3Bucket) -> None:
    with pytest.raises(StoreFault, match=r"^s3://none/wire/main refuses \(NoSuchBucket\): "):
        S3Store(bucket._replace(name="none")).listing()
    with pytest.raises(StoreFault, match="could not be asked: Could not connect"):
        S3Store(bucket._replace(endpoint="http://127.0.0.1:9")).listing()


def test_without_the_library_the_sentence_says_what_to_install(
    bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(StoreFault, match=r"needs boto3: install it \(the extra `s3`\)"):
        S3Store(bucket)


def test_settings_name_it(bucket: S3Bucket, settings: Any) -> None:
    settings.ARCHIVE_S3_URL = (bucket.name, bucket.prefix)
    settings.ARCHIVE_S3_ENDPOINT, settings.ARCHIVE_S3_REGION = bucket.endpoint, bucket.region
    settings.ARCHIVE_S3_KEY_ID, settings.ARCHIVE_S3_SECRET = bucket.key_id, bucket.secret
    store = archive_store()
    assert isinstance(store, S3Store)
    assert store.bucket == bucket
    assert archive_store() is store


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://ticks", ("ticks", "")),
        ("s3://ticks/", ("ticks", "")),
        ("s3://my.ticks-2/wire/main/", ("my.ticks-2", "wire/main/")),
        *((url, None) for url in ("ticks", "https://s3.example/ticks", "s3://", "s3://T/x", "s3://ticks//x")),
        *((url, None) for url in ("s3://id:key@ticks", "s3://a b")),
    ],
)
def test_bucket_and_prefix_are_read_and_what_names_none_is_refused(
    url: str, found: tuple[str, str] | None
) -> None:
    if found:
        assert read_s3_url(url) == found
    else:
        with pytest.raises(
            ImproperlyConfigured, match="ARCHIVE_S3_URL should be s3://bucket or s3://bucket/"
        ):
            read_s3_url(url)


def store_at(server: LocalHttp) -> S3Store:
    return S3Store(S3Bucket("ticks", "", server.url, "eu-central-1", "id", "secret"))


class CarefulStore(LocalHttp):
    """Takes what its sum fits to, and flips a byte of the first `bad` bodies before it looks."""

    def __init__(self, bad: int) -> None:
        super().__init__()
        self.bad = bad
        self.taken: list[bytes] = []
        self.asked = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        body = request.body
        self.asked += 1
        if self.bad:
            self.bad -= 1
            body = b"\0" + body[1:]
        if b64encode(hashlib.md5(body).digest()).decode() == request.headers["content-md5"]:  # noqa: S324
            self.taken.append(body)
            writer.write(whole_answer(b"", ETag='"tag"'))
        else:
            said = b"<Error><Code>BadDigest</Code><Message>The sum does not fit.</Message></Error>"
            writer.write(whole_answer(said, "400 Bad Request", Content_Type="application/xml"))
        await writer.drain()


@pytest.fixture(params=[0, 1])
async def careful(request: pytest.FixtureRequest) -> AsyncIterator[CarefulStore]:
    async with CarefulStore(request.param) as running:
        yield running


async def test_what_was_damaged_on_the_way_is_not_taken(careful: CarefulStore, local: Path) -> None:
    store = store_at(careful)
    is_bad = careful.bad
    putting = asyncio.to_thread(store.put, TICKS, local)
    if is_bad:
        with pytest.raises(StoreFault, match="BadDigest"):
            await putting
    else:
        await putting
    assert [len(body) for body in careful.taken] == [1_500_000] * (not is_bad)


class BrokenStore(LocalHttp):
    """Breaks off in the middle of the first `breaks` bodies."""

    def __init__(self, breaks: int) -> None:
        super().__init__()
        self.breaks = breaks

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        whole = whole_answer(b"x" * 1000)
        self.breaks -= 1
        writer.write(whole[:-500] if self.breaks >= 0 else whole)
        await writer.drain()


@pytest.mark.parametrize(("breaks", "is_read"), [(0, True), (2, True), (3, False)])
async def test_body_that_breaks_off_is_asked_for_again_twice(breaks: int, is_read: bool) -> None:
    async with BrokenStore(breaks) as running:
        store = store_at(running)
        reading = asyncio.to_thread(store.read, TICKS)
        if is_read:
            assert await reading == b"x" * 1000
        else:
            with pytest.raises(StoreFault, match="could not be asked"):
                await reading


class PagedStore(LocalHttp):
    """Lists one file on each page."""

    PATHS = tuple(f"ticks/S{number}/2026-11-17.parquet" for number in range(3))

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        number = int(request.query.get("continuation-token", "0"))
        more = number < len(self.PATHS) - 1
        page = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"<NextContinuationToken>{number + 1}</NextContinuationToken>"
            f'<Contents><Key>{self.PATHS[number]}</Key><ETag>"tag"</ETag></Contents></ListBucketResult>'
        )
        writer.write(whole_answer(page.encode(), Content_Type="application/xml"))
        await writer.drain()


async def test_all_pages_of_a_list_are_read() -> None:
    async with PagedStore() as running:
        store = store_at(running)
        assert await asyncio.to_thread(store.listing) == list(PagedStore.PATHS)
