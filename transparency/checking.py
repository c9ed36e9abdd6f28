"""Compares the entries of the ledger, read again from the first on, with every checkpoint of them."""

from __future__ import annotations

from collections.abc import Iterator

from .checkpoints import Note, NoteRefused
from .merkle import Frontier, leaf_hash
from .models import LogKey, SignedCheckpoint

BATCH = 500


class CheckpointCheck:
    """Of the current log: what one before it signed, that one signed of entries that were lost."""

    def __init__(self) -> None:
        self._tree = Frontier()
        self._keys = [row.key for row in LogKey.objects.of_current_log()]
        self._signed = signed_in_order()
        self._next = next(self._signed, None)

    def add(self, text: str) -> str:
        """What of the checkpoints up to this entry does not hold; empty if all does."""
        fault = self._compare()
        self._tree.add(leaf_hash(text.encode()))
        return fault or self._compare()

    def end(self) -> str:
        fault = self._compare()
        if not fault and self._next is not None:
            return f"{self._next.size} entries were signed, and there are {self._tree.size}."
        return fault

    def _compare(self) -> str:
        signed = self._next
        if signed is None or signed.size != self._tree.size:
            return ""
        self._next = next(self._signed, None)
        try:
            is_signed = Note.read(signed.note.encode()).signed_by(self._keys)
        except NoteRefused:
            is_signed = {}
        if not is_signed or signed.checkpoint.size != signed.size:
            return f"The checkpoint of {signed.size} entries was altered: it is not what the log signed."
        if signed.checkpoint.root != self._tree.root():
            return (
                f"The first {signed.size} entries are not those that were signed: the ledger was rewritten."
            )
        return ""


def signed_in_order() -> Iterator[SignedCheckpoint]:
    """Those that there are when the first is asked for, a few hundred at a time."""
    signed = SignedCheckpoint.objects.of_current_log().order_by("size")
    newest, after = signed.last(), -1
    upto = newest.size if newest else after
    while batch := list(signed.filter(size__gt=after, size__lte=upto)[:BATCH]):
        yield from batch
        after = batch[-1].size
