"""Offers each checkpoint to the witnesses. Each has a loop of its own, so that one that is away holds nothing
up."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.http import HttpFailed, bounded, open_client, request, tls
from core.threads import in_thread

from . import merkle
from .checkpoints import SIZE
from .keys import cosigned_at_s
from .models import Cosignature, SignedCheckpoint, Tile
from .notes import Note, NoteRefused, Signature
from .offers import ADD, Offer, WitnessAddress

logger = logging.getLogger(__name__)
AGAIN = timedelta(hours=1)
LOOK_EVERY_S = 0.5
AGAIN_AFTER_FAULT_S = 5.0
WITHIN_S = 10.0
MOST_BYTES = 64 * 1024


class WitnessRefused(Exception):
    """It did not cosign; the sentence says why."""


class Due(NamedTuple):
    signed: SignedCheckpoint
    old: int


class WitnessLink:
    def __init__(self, witness: WitnessAddress) -> None:
        self.key, self._url = witness
        self.name = self.key.name
        self.fault = ""
        """Why it did not cosign the last time; empty if it did."""
        self.cosigned_at: datetime | None = None
        """When it last did, by the clock here."""
        self._loop = BackgroundLoop(
            f"witness {self.name}",
            self.look,
            fault=LastingFault(logger, f"The witness {self.name} does not cosign"),
            broke=f"A checkpoint could not be offered to the witness {self.name}",
            passing=(HttpFailed, WitnessRefused, *UNANSWERED),
            after=LOOK_EVERY_S,
            again=AGAIN_AFTER_FAULT_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        due = await in_thread(self._find_due, timezone.now())
        if due is None:
            return
        try:
            await self._offer(due)
        except (HttpFailed, WitnessRefused) as error:
            self.fault = str(error)
            raise
        self.fault = ""

    def _find_due(self, now: datetime) -> Due | None:
        newest = SignedCheckpoint.objects.newest()
        last = Cosignature.objects.last_of(str(self.key))
        self.cosigned_at = last.asked_at if last else None
        if newest is None or (last and last.checkpoint == newest and now - last.asked_at < AGAIN):
            return None
        # One process offers it, and another one does if that one is gone.
        turn = f"witness-{self.key.id.hex()}-{newest.pk}"
        if not cache.add(turn, 1, timeout=round(AGAIN_AFTER_FAULT_S)):
            return None
        is_followed = last is not None and last.checkpoint.origin == newest.origin
        return Due(newest, last.checkpoint.size if last and is_followed else 0)

    async def _offer(self, due: Due) -> None:
        status, body = await self._post(due)
        if status == HTTPStatus.CONFLICT:
            # It knows better what it cosigned last.
            due = due._replace(old=size_in(body, due.signed.size))
            status, body = await self._post(due)
        if status != HTTPStatus.OK:
            raise WitnessRefused(f"it answered {status}: {' '.join(body.split())[:200]}")
        at, line = self._checked(due.signed, body)
        await in_thread(Cosignature.objects.add, due.signed, str(self.key), at, str(line), timezone.now())

    async def _post(self, due: Due) -> tuple[int, str]:
        offer = await in_thread(make_offer, due)
        await asyncio.to_thread(tls, trust_env=True)
        within_s = patient(WITHIN_S)
        async with bounded(within_s), open_client(timeout=within_s) as client:
            response, body = await request(
                client, "POST", f"{self._url}{ADD}", most=MOST_BYTES, content=bytes(offer)
            )
        return response.status_code, body.decode("utf-8", "replace")

    def _checked(self, signed: SignedCheckpoint, body: str) -> tuple[datetime, Signature]:
        text = Note.read(signed.note.encode()).text
        try:
            lines = tuple(Signature.read(line) for line in body.removesuffix("\n").split("\n"))
            line = Note(text, lines).signed_by([self.key])[self.key]
            return datetime.fromtimestamp(cosigned_at_s(line.signature), UTC), line
        except (NoteRefused, KeyError, ValueError, OverflowError, OSError):
            raise WitnessRefused("what it answered is no cosignature of its key") from None


def make_offer(due: Due) -> Offer:
    note, size = Note.read(due.signed.note.encode()), due.signed.size
    tiles = Tile.objects.read(merkle.tiles_for(size, max(0, due.old - 1)))
    return Offer(due.old, tuple(merkle.consistency_proof(tiles, due.old, size)), note)


def size_in(body: str, most: int) -> int:
    """The size that the witness cosigned last. Raises WitnessRefused for one that we do not have."""
    text = body.strip()
    if not SIZE.fullmatch(text):
        raise WitnessRefused("it answered a conflict without a size")
    if int(text) > most:
        raise WitnessRefused(f"it has cosigned {text} entries, and the ledger has {most}: entries are lost")
    return int(text)


class Witnesses:
    def __init__(self) -> None:
        self.links: list[WitnessLink] = []

    async def start(self) -> None:
        self.links = [WitnessLink(each) for each in settings.WITNESSES]
        for link in self.links:
            await link.start()

    async def stop(self) -> None:
        for link in self.links:
            await link.stop()


witnesses = Witnesses()
