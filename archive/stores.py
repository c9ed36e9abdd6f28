"""Where the finished files are kept: a folder on disk, or a bucket of S3."""

from __future__ import annotations

import hashlib
import os
import shutil
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

from django.conf import settings

from archive.manifests import OWNER, checked, is_ours


class NotStored(Exception):
    """There is no such file in the archive."""


class ArchiveStore(Protocol):
    """Whole files under the paths of a manifest. A fault of the disk or the network is an OSError."""

    def put(self, path: str, local: Path) -> None:
        """Whole or not at all, in place of what is there; `local` stays. It outlasts a power cut then."""

    def open(self, path: str, start: int = 0, end: int | None = None) -> Generator[bytes, None, None]:
        """The bytes from `start` up to `end`, which is excluded, in blocks. Raises NotStored, as the next two
        do, before the first block is asked for."""

    def size(self, path: str) -> int: ...

    def read(self, path: str) -> bytes: ...

    def listing(self, prefix: str = "") -> list[str]:
        """Every path that begins so, in order."""

    def marks(self, prefix: str = "") -> dict[str, str]:
        """The same paths, each with a text that is another one when the file has been replaced."""

    def read_owner(self) -> bytes:
        """Who makes these files; raises NotStored if that is not recorded."""

    def put_owner(self, content: bytes) -> None:
        """Whole or not at all, as `put` does."""

    def remove(self, path: str) -> None:
        """What is not there is removed already."""


# The archive on a disk.
BLOCK = 1 << 18
UNFINISHED = ".unfinished"


class DiskStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, path: str, local: Path) -> None:
        with local.open("rb") as source:
            self._put(self._at(path), source)

    def _put(self, target: Path, source: BinaryIO) -> None:
        self._make_folder(target.parent)
        unfinished = target.with_name(target.name + UNFINISHED)
        try:
            with unfinished.open("wb") as copy:
                shutil.copyfileobj(source, copy, BLOCK)
                copy.flush()
                os.fsync(copy.fileno())
            unfinished.replace(target)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)

    def open(self, path: str, start: int = 0, end: int | None = None) -> Generator[bytes, None, None]:
        with _stored(path):
            return _blocks(self._at(path).open("rb"), start, end)

    def size(self, path: str) -> int:
        with _stored(path):
            return self._at(path).stat().st_size

    def read(self, path: str) -> bytes:
        with _stored(path):
            return self._at(path).read_bytes()

    def listing(self, prefix: str = "") -> list[str]:
        folder = self.root / prefix.rpartition("/")[0]
        found = (each.relative_to(self.root).as_posix() for each in folder.rglob("*") if each.is_file())
        return sorted(path for path in found if path.startswith(prefix) and is_ours(path))

    def marks(self, prefix: str = "") -> dict[str, str]:
        found = {}
        for path in self.listing(prefix):
            # What was removed a moment ago has none.
            with suppress(FileNotFoundError):
                facts = self._at(path).stat()
                found[path] = f"{facts.st_ino}-{facts.st_mtime_ns}-{facts.st_size}"
        return found

    def read_owner(self) -> bytes:
        with _stored(OWNER):
            return (self.root / OWNER).read_bytes()

    def put_owner(self, content: bytes) -> None:
        self._put(self.root / OWNER, BytesIO(content))

    def __str__(self) -> str:
        return str(self.root)

    def remove(self, path: str) -> None:
        target = self._at(path)
        target.unlink(missing_ok=True)
        if target.parent.is_dir():
            sync_folder(target.parent)

    def _at(self, path: str) -> Path:
        return self.root / checked(path)

    def _make_folder(self, folder: Path) -> None:
        """Each new one is in the folder above it for good, or its files would not be either."""
        if folder.is_dir():
            return
        if folder != self.root:
            self._make_folder(folder.parent)
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


@contextmanager
def _stored(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotStored(path) from None


def _blocks(file: BinaryIO, start: int, end: int | None) -> Generator[bytes, None, None]:
    with file:
        file.seek(start)
        left = None if end is None else max(0, end - start)
        while block := file.read(BLOCK if left is None else min(BLOCK, left)):
            yield block
            left = None if left is None else left - len(block)


def sync_folder(folder: Path) -> None:
    """A renamed file has its new name for good when its folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# The archive in a bucket of Amazon S3, or of any other store that speaks its protocol.
T = TypeVar("T")

# What one request reads: while a client takes its time with it, no connection to the store is held.
PIECE = 1 << 20
TRIES = 3
CONNECT_S, READ_S = 5, 20
NO_BOTO = (
    "ARCHIVE_S3_URL needs boto3: install it (the extra `s3`), or unset the variable to keep the archive on a "
    "disk."
)
ABSENT = {"404", "NoSuchKey", "NotFound"}


class StoreFault(OSError):
    """The store did not do what it was asked; the sentence says why."""


class S3Bucket(NamedTuple):
    name: str
    prefix: str
    """Empty, or with a slash at its end."""
    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    secret: str = ""

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


class S3Store:
    """Its client may be used by many threads at once."""

    def __init__(self, bucket: S3Bucket) -> None:
        self.bucket = bucket
        self._client, self._faults = connect(bucket)

    def put(self, path: str, local: Path) -> None:
        """In one request, so that the store has all of it or nothing. The store compares the MD5 itself."""
        with local.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()
        sum_of = b64encode(digest).decode()

        def send() -> None:
            with local.open("rb") as file:
                self._client.put_object(**self._at(path), Body=file, ContentMD5=sum_of)

        self._ask(path, send)

    def open(self, path: str, start: int = 0, end: int | None = None) -> Generator[bytes, None, None]:
        size, tag = self._look(path)
        return self._pieces(path, tag, start, size if end is None else min(end, size))

    def size(self, path: str) -> int:
        return self._look(path)[0]

    def read(self, path: str) -> bytes:
        return self._ask(path, lambda: self._read(**self._at(path)))

    def listing(self, prefix: str = "") -> list[str]:
        return sorted(self.marks(prefix))

    def marks(self, prefix: str = "") -> dict[str, str]:
        own = self.bucket.prefix
        pages = self._client.get_paginator("list_objects_v2")

        def look() -> dict[str, str]:
            found = pages.paginate(Bucket=self.bucket.name, Prefix=own + prefix)
            rows = [row for page in found for row in page.get("Contents", ())]
            return {str(row["Key"]).removeprefix(own): str(row["ETag"]) for row in rows}

        return {path: tag for path, tag in self._ask(prefix, look).items() if is_ours(path)}

    def remove(self, path: str) -> None:
        self._ask(path, lambda: self._client.delete_object(**self._at(path)))

    def read_owner(self) -> bytes:
        return self._ask(OWNER, lambda: self._read(**self._place(OWNER)))

    def put_owner(self, content: bytes) -> None:
        self._ask(OWNER, lambda: self._client.put_object(**self._place(OWNER), Body=content))

    def __str__(self) -> str:
        return str(self.bucket)

    def try_out(self) -> None:
        """Whether it takes, lists, gives back and removes; raises StoreFault if it does not."""
        key, content = f"{self.bucket.prefix}doctor-{token_hex(4)}", token_hex(64).encode()
        at = {"Bucket": self.bucket.name, "Key": key}
        self._ask(key, lambda: self._client.put_object(**at, Body=content))
        try:
            self._ask(key, lambda: self._client.list_objects_v2(Bucket=self.bucket.name, Prefix=key))
            if self._ask(key, lambda: self._read(**at)) != content:
                raise StoreFault(f"{self.bucket} gives back something else than it was given")
        finally:
            self._ask(key, lambda: self._client.delete_object(**at))

    def _at(self, path: str) -> dict[str, str]:
        return self._place(checked(path))

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self.bucket.name, "Key": self.bucket.prefix + key}

    def _look(self, path: str) -> tuple[int, str]:
        found = self._ask(path, lambda: self._client.head_object(**self._at(path)))
        return int(found["ContentLength"]), str(found["ETag"])

    def _pieces(self, path: str, tag: str, start: int, stop: int) -> Generator[bytes, None, None]:
        """All of one object: if it is replaced during the read, that is a fault."""
        for begin in range(start, stop, PIECE):
            last = min(begin + PIECE, stop) - 1
            wanted = {**self._at(path), "Range": f"bytes={begin}-{last}", "IfMatch": tag}
            piece = self._ask(path, lambda: self._read(**wanted))  # noqa: B023 - called at once
            if len(piece) != last + 1 - begin:
                raise StoreFault(f"{self.bucket} gave {len(piece)} bytes of {path} for {last + 1 - begin}")
            yield piece

    def _read(self, **wanted: str) -> bytes:
        """The client repeats what is refused, and not what breaks off while it is read."""
        for tries_left in reversed(range(TRIES)):
            try:
                with self._client.get_object(**wanted)["Body"] as body:
                    content: bytes = body.read()
                    return content
            except self._faults.broken:
                if not tries_left:
                    raise
        raise AssertionError

    def _ask(self, path: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except self._faults.refused as error:
            why: Mapping[str, Any] = getattr(error, "response", {}).get("Error", {})
            code = str(why.get("Code", ""))
            if code in ABSENT:
                raise NotStored(path) from None
            says = str(why.get("Message", "")).rstrip(".")
            raise StoreFault(f"{self.bucket} refuses ({code}): {says}") from None
        except self._faults.other as error:
            raise _not_asked(self.bucket, error) from None


class Faults(NamedTuple):
    """The library's own, which are only known once it is imported."""

    refused: type[Exception]
    broken: tuple[type[Exception], ...]
    """The connection was, while a body came."""
    other: tuple[type[Exception], ...]


def _not_asked(bucket: S3Bucket, error: Exception) -> StoreFault:
    return StoreFault(f"{bucket} could not be asked: {str(error).rstrip('.')}")


def connect(bucket: S3Bucket) -> tuple[Any, Faults]:
    try:
        import boto3
        from botocore import exceptions
        from botocore.config import Config
        from urllib3.exceptions import HTTPError
    except ImportError:
        raise StoreFault(NO_BOTO) from None
    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"mode": "standard", "max_attempts": TRIES},
        max_pool_connections=16,
        # Not every store knows Amazon's newer checksums; the MD5 that `put` sends they all compare.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # Buckets of a store of one's own seldom have names in the DNS.
        s3={"addressing_style": "path" if bucket.endpoint else "auto"},
    )
    # Each library reports a truncated body by an exception of its own.
    broken = exceptions.IncompleteReadError, exceptions.HTTPClientError, HTTPError
    faults = Faults(exceptions.ClientError, broken, (exceptions.BotoCoreError, HTTPError))
    try:
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=bucket.endpoint or None,
            region_name=bucket.region or None,
            # Without them boto3 looks in its usual places: the environment, a profile, the machine's role.
            aws_access_key_id=bucket.key_id or None,
            aws_secret_access_key=bucket.secret or None,
            config=config,
        )
    except (exceptions.BotoCoreError, ValueError) as error:
        raise _not_asked(bucket, error) from None
    return client, faults


def archive_store() -> ArchiveStore:
    """The one that the settings name. A StoreFault says why there is none."""
    if settings.ARCHIVE_S3_URL is None:
        return DiskStore(Path(settings.ARCHIVE_DIR))
    return connected(
        S3Bucket(
            *settings.ARCHIVE_S3_URL,
            endpoint=settings.ARCHIVE_S3_ENDPOINT,
            region=settings.ARCHIVE_S3_REGION,
            key_id=settings.ARCHIVE_S3_KEY_ID,
            secret=settings.ARCHIVE_S3_SECRET,
        )
    )


# Making a client takes half a second, and its connections are used again.
connected = lru_cache(maxsize=4)(S3Store)
