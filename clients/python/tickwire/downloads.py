"""Where the download of an archive's file is. It asks nothing itself. It writes beside the file, which is
there once it is whole and has the hash that the service names."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path
from urllib.parse import quote as quoted

import httpx

from .answers import raise_as_ours, require_success, wait_before_again, wait_before_going_on
from .errors import Address, BrokenAnswer, DownloadError

SHA256 = re.compile(r'"([0-9a-f]{64})"')
PARTIAL, NOT_SATISFIABLE = 206, 416


class Download:
    def __init__(self, path: str, to: str | Path, address: Address, retries: int, walk_retries: int) -> None:
        self.path = f"archive/{quoted(path, safe='/')}"
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise ValueError(f"{path} is not a path of the archive: use one from archive().")
        target = Path(to)
        self._target = target / path.rsplit("/", 1)[-1] if target.is_dir() else target
        self._part = self._target.with_name(self._target.name + ".part")
        self._address, self._retries, self._walk_retries = address, retries, walk_retries
        self._hash: str | None = None
        self._failures = 0
        self._has_begun = False
        self._is_of_before = self._size() > 0

    def headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity"}
        if size := self._size():
            headers["Range"] = f"bytes={size}-"
            if self._hash is not None:
                headers["If-Range"] = f'"{self._hash}"'
        return headers

    def begin(self, answer: httpx.Response) -> Callable[[bytes], None] | None:
        """What takes the answer's body, part by part; or None if it is to be asked for again, as a whole."""
        if answer.status_code == NOT_SATISFIABLE and self._size():
            # What lies there ends where the file does, or beyond it.
            self._part.unlink()
            return None
        require_success(answer)
        named = SHA256.search(answer.headers.get("ETag", ""))
        if named is None:
            raise DownloadError(
                f"The service gave no SHA-256 for /api/{self.path}, so the file cannot be checked."
            )
        is_going_on = answer.status_code == PARTIAL
        if is_going_on and not answer.headers.get("Content-Range", "").startswith(f"bytes {self._size()}-"):
            raise DownloadError(f"The service sent a part of /api/{self.path} that was not requested.")
        self._hash, self._has_begun = named[1], True
        # A proxy may send it in chunks, without a length: then these say whether it is whole.
        self._length = self._size() * is_going_on + int(answer.headers.get("Content-Length", 0))
        if not is_going_on:
            self._part.write_bytes(b"")
            self._is_of_before = False
        return self._write

    def _write(self, chunk: bytes) -> None:
        # What came is progress, so the count of failures begins anew.
        self._failures = 0
        with self._part.open("ab") as file:
            file.write(chunk)

    def finish(self) -> Path | None:
        """The file; or None if it is to be asked for again."""
        if self._size() < self._length:
            raise BrokenAnswer("The response ended too early.")
        with self._part.open("rb") as file:
            found = file_digest(file, "sha256").hexdigest()
        if found == self._hash:
            return self._part.replace(self._target)
        self._part.unlink()
        if self._is_of_before:
            # What lay there was of another file, or was damaged.
            self._is_of_before = False
            return None
        raise DownloadError(f"/api/{self.path} has the SHA-256 {found}, but should have {self._hash}.")

    def wait_after(self, failure: Exception) -> float:
        attempt = self._failures
        self._failures += 1
        wait = wait_before_going_on if self._has_begun else wait_before_again
        wait_s = wait(failure, attempt)
        if wait_s is None or attempt >= (self._walk_retries if self._has_begun else self._retries):
            raise_as_ours(self._address, failure)
        return wait_s

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0
