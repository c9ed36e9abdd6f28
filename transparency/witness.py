"""A witness of other logs: it cosigns a checkpoint only if that extends the last one it cosigned, and so no
log can show different people different histories."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from .checkpoints import (
    ADD,
    SIZE_TYPE,
    Checkpoint,
    CheckpointRefused,
    Note,
    NoteRefused,
    Offer,
    OfferRefused,
    judge,
    read_hash,
    sign,
    write_hash,
)
from .keys import KeyType, SigningKey, VerifierKey

KEY, STATE = "witness-key", "witness.sqlite3"
# A disk may be slow, but the log that offers a checkpoint does not wait without limit.
BUSY_S = 10.0
PLAIN = "text/plain; charset=utf-8"
MOST_BYTES = 64 * 1024


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
    """Made under this name if there is none yet."""
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


class WitnessApp:
    """Its HTTP side: `POST /add-checkpoint`, and its key at `/`."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        status, text = await self._answer(scope, receive)
        kind = SIZE_TYPE if status == HTTPStatus.CONFLICT else PLAIN
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(text.encode())).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    async def _answer(self, scope: dict[str, Any], receive: Any) -> tuple[HTTPStatus, str]:
        if scope["path"] == "/" and scope["method"] == "GET":
            return HTTPStatus.OK, f"{self._witness.key.verifier}\n"
        if scope["path"] != ADD:
            return HTTPStatus.NOT_FOUND, f"Checkpoints are offered at {ADD}.\n"
        if scope["method"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, f"Checkpoints are sent to {ADD} with POST.\n"
        body = b""
        is_whole = False
        while not is_whole:
            message = await receive()
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
            if len(body) > MOST_BYTES:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {MOST_BYTES:,} bytes.\n"
        try:
            return HTTPStatus.OK, await asyncio.to_thread(
                self._witness.add_checkpoint, body, int(time.time())
            )
        except OfferRefused as refused:
            return refused.status, str(refused)
