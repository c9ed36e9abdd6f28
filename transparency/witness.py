"""A witness of other logs: it cosigns a checkpoint only if that extends the last one it cosigned, and so no
log can show different people different histories."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

from .checkpoints import Checkpoint, CheckpointRefused, read_hash, write_hash
from .keys import KeyType, SigningKey, VerifierKey
from .notes import Note, NoteRefused, sign
from .offers import Offer, OfferRefused, judge

KEY, STATE = "witness-key", "witness.sqlite3"
# A disk may be slow, but whoever offers does not wait for ever.
BUSY_S = 10.0


class Witness:
    def __init__(self, folder: Path, key: SigningKey, logs: Iterable[VerifierKey]) -> None:
        """`logs`: the keys of the logs it knows, each by the origin that is its name."""
        self.key = key
        self._state = folder / STATE
        self._logs: dict[str, list[VerifierKey]] = {}
        for each in logs:
            self._logs.setdefault(each.name, []).append(each)

    def add_checkpoint(self, raw: bytes, now_s: int) -> str:
        """The line of the cosignature. Raises OfferRefused."""
        offer = Offer.read(raw)
        offered = self._signed_by_its_log(offer.note)
        with self._turn() as state:
            last = last_of(state, offered.origin)
            if last is None:
                text = "What was cosigned before is not known here: the operator has to accept the log.\n"
                raise OfferRefused(HTTPStatus.FORBIDDEN, text)
            judge(offer, offered, last)
            write(state, offered)
        return str(sign(offer.note.text, self.key, now_s))

    def accept(self, origin: str, note: Note) -> Checkpoint:
        """From here on the log is followed. Raises OfferRefused."""
        accepted = self._signed_by_its_log(note)
        if accepted.origin != origin:
            raise OfferRefused(HTTPStatus.NOT_FOUND, f"This is a checkpoint of {accepted.origin}.\n")
        with self._turn() as state:
            if (last := last_of(state, origin)) is not None:
                text = f"{origin} is followed already, and was cosigned up to {last.size} entries.\n"
                raise OfferRefused(HTTPStatus.CONFLICT, text)
            write(state, accepted)
        return accepted

    def _signed_by_its_log(self, note: Note) -> Checkpoint:
        try:
            found = Checkpoint.read(note.text)
        except CheckpointRefused as refused:
            raise OfferRefused(HTTPStatus.BAD_REQUEST, f"{refused}\n") from None
        if (keys := self._logs.get(found.origin)) is None:
            raise OfferRefused(HTTPStatus.NOT_FOUND, f"{found.origin} is not a log that is known here.\n")
        try:
            is_signed = note.signed_by(keys)
        except NoteRefused as refused:
            raise OfferRefused(HTTPStatus.FORBIDDEN, f"{refused}\n") from None
        if not is_signed:
            raise OfferRefused(HTTPStatus.FORBIDDEN, f"No key of {found.origin} that is known here signed.\n")
        return found

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        """One decision after the other; what is written in it is on the disk before it ends."""
        with closing(sqlite3.connect(self._state, timeout=BUSY_S, isolation_level=None)) as state:
            state.execute("PRAGMA synchronous = EXTRA")
            state.execute("BEGIN IMMEDIATE")
            with state:
                state.execute(
                    "CREATE TABLE IF NOT EXISTS log (origin TEXT PRIMARY KEY, size INTEGER, root TEXT)"
                )
                yield state


def last_of(state: sqlite3.Connection, origin: str) -> Checkpoint | None:
    found = state.execute("SELECT size, root FROM log WHERE origin = ?", (origin,)).fetchone()
    return Checkpoint(origin, found[0], read_hash(found[1])) if found else None


def write(state: sqlite3.Connection, cosigned: Checkpoint) -> None:
    values = (cosigned.origin, cosigned.size, write_hash(cosigned.root))
    state.execute("INSERT OR REPLACE INTO log (origin, size, root) VALUES (?, ?, ?)", values)


def key_in(folder: Path, name: str) -> SigningKey:
    """Made under this name where there is none yet."""
    path = folder / KEY
    if not path.exists():
        draft = folder / f"{KEY}.{os.getpid()}"
        draft.touch(mode=0o600)
        with draft.open("w") as file:
            file.write(f"{SigningKey.make(name, KeyType.COSIGNATURE).secret_text()}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link never replaces a file, so of two first starts at once one key wins.
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    return SigningKey.read(path.read_text())
