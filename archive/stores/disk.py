"""The archive on a disk."""

import os
import shutil
from collections.abc import Generator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from archive.layout import OWNER, checked, is_ours

from .store import NotStored

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
        try:
            file = self._at(path).open("rb")
        except FileNotFoundError:
            raise NotStored(path) from None
        return _blocks(file, start, end)

    def size(self, path: str) -> int:
        try:
            return self._at(path).stat().st_size
        except FileNotFoundError:
            raise NotStored(path) from None

    def read(self, path: str) -> bytes:
        try:
            return self._at(path).read_bytes()
        except FileNotFoundError:
            raise NotStored(path) from None

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
        try:
            return (self.root / OWNER).read_bytes()
        except FileNotFoundError:
            raise NotStored(OWNER) from None

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
