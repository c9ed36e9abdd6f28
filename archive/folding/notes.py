"""What a run of the nightly work tells the next one, beside the journal."""

import os
from pathlib import Path

import msgspec

from archive.stores import sync_folder


class HandedOver:
    """Digests of files that took the place of others and may be in no manifest yet: a run that was stopped
    between the two finds such a file, and it is not damaged."""

    def __init__(self, note: Path) -> None:
        self._note = note

    def add(self, sha256: str) -> None:
        write_whole(self._note, msgspec.json.encode([*self._known(), sha256]))

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._known()

    def clear(self) -> None:
        self._note.unlink(missing_ok=True)

    def _known(self) -> list[str]:
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=list[str])
        except FileNotFoundError:
            return []


def write_whole(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)
