from collections.abc import Generator
from pathlib import Path
from typing import Protocol


class NotStored(Exception):
    """There is no such file in the archive."""


class ArchiveStore(Protocol):
    """Whole files under the paths of `archive.layout`. A fault of the disk or the network is an OSError."""

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
        """Who makes these files; raises NotStored where nobody has said so."""

    def put_owner(self, content: bytes) -> None:
        """Whole or not at all, as `put` does."""

    def remove(self, path: str) -> None:
        """What is not there is removed already."""
