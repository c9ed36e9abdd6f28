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

from core.background import BackgroundLoop, cancel_and_wait
from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.http import HttpFailed, bounded, open_client, request, tls
from core.threads import in_thread

from . import merkle
from .checkpoints import ADD, SIZE, Note, NoteRefused, Offer, Signature, WitnessAddress
from .keys import cosigned_at_s
from .models import Cosignature, Objection, SignedCheckpoint, Tile

logger = logging.getLogger(__name__)
AGAIN = timedelta(hours=1)
LOOK_EVERY_S = 0.5
AGAIN_AFTER_FAULT_S = 5.0
WITHIN_S = 10.0
# How long a process waits at its start, before anything is signed.
AT_START_S = 2.0
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
        """When it last did, by the clock here, or when it first could have."""
        self.looked = asyncio.Event()
        self._has_answered = False
        """Since this process started, or last found it away: the database may be older than what it knows."""
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
        try:
            if due := await in_thread(self._find_due, timezone.now()):
                await self._offer(due)
            self.fault, self._has_answered = "", True
        except (HttpFailed, WitnessRefused) as error:
            self.fault, self._has_answered = str(error), isinstance(error, WitnessRefused)
            raise
        finally:
            self.looked.set()

    def _find_due(self, now: datetime) -> Due | None:
        newest = SignedCheckpoint.objects.newest()
        last = Cosignature.objects.last_of(str(self.key))
        if newest is None:
            return None
        self.cosigned_at = last.asked_at if last else SignedCheckpoint.objects.earliest("pk").made_at
        # One process offers it, and another one does if that one is gone.
        turn = f"witness-{self.key.id.hex()}-{newest.pk}"
        is_first = cache.add(turn, 1, timeout=round(AGAIN_AFTER_FAULT_S))
        is_fresh = last and last.checkpoint == newest and now - last.asked_at < AGAIN
        objection = Objection.objects.filter(origin=newest.origin, witness=str(self.key)).first()
        if self._has_answered and not (is_first and (objection or not is_fresh)):
            if objection is not None:
                raise WitnessRefused(str(objection))
            if self.fault and not is_fresh:
                # It is not over because it is not this process's turn to ask.
                raise WitnessRefused(self.fault)
            return None
        is_followed = last is not None and last.checkpoint.origin == newest.origin
        return Due(newest, last.checkpoint.size if last and is_followed else 0)

    async def _offer(self, due: Due) -> None:
        status, body = await self._post(due)
        if status == HTTPStatus.CONFLICT:
            # It knows better what it cosigned last.
            size = size_in(body)
            if size > due.signed.size:
                await in_thread(self._object, due.signed, size)
                return
            due = due._replace(old=size)
            status, body = await self._post(due)
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            await in_thread(self._object, due.signed, None)
        if status != HTTPStatus.OK:
            raise WitnessRefused(f"it answered {status}: {' '.join(body.split())[:200]}")
        at, line = self._checked(due.signed, body)
        await in_thread(Cosignature.objects.add, due.signed, str(self.key), at, str(line), timezone.now())

    def _object(self, signed: SignedCheckpoint, size: int | None) -> None:
        """Raises WitnessRefused, unless another process has offered more by then."""
        newest = SignedCheckpoint.objects.newest()
        if size is not None and newest is not None and size <= newest.size:
            return
        objection, _ = Objection.objects.update_or_create(
            origin=signed.origin, witness=str(self.key), defaults={"size": size}
        )
        raise WitnessRefused(str(objection))

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


def size_in(body: str) -> int:
    """The size that the witness cosigned last."""
    text = body.strip()
    if not SIZE.fullmatch(text):
        raise WitnessRefused("it answered a conflict without a size")
    return int(text)


class Witnesses:
    def __init__(self) -> None:
        self.links: list[WitnessLink] = []

    async def start(self) -> None:
        self.links = [WitnessLink(each) for each in settings.WITNESSES]
        for link in self.links:
            await link.start()
        # One that is away holds nothing up.
        looked = [asyncio.create_task(link.looked.wait()) for link in self.links]
        if looked:
            await asyncio.wait(looked, timeout=patient(AT_START_S))
        await cancel_and_wait(*looked)

    async def stop(self) -> None:
        for link in self.links:
            await link.stop()


witnesses = Witnesses()
