"""Checkpoints are offered to witnesses, and what they cosign is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.test import AsyncClient
from django.utils import timezone

from core.http import HttpFailed
from tests.local_http import LocalHttp, read_request, whole_answer
from transparency.keyring import keyring
from transparency.keys import KeyType, SigningKey, cosigned_at_s
from transparency.models import Cosignature, SignedCheckpoint
from transparency.notes import Note, sign
from transparency.offers import Offer, OfferRefused, WitnessAddress
from transparency.signing import Signer
from transparency.witness import Witness
from transparency.witnesses import AGAIN, WitnessLink, WitnessRefused

from .ledgers import NOON, Texts, after, make_signer

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.services,
    pytest.mark.usefixtures("known_file"),
]
KEY = SigningKey.make("witness.example", KeyType.COSIGNATURE)
NOW_S = 1_790_000_000


class Witnessing(LocalHttp):
    """A witness on loopback that answers what the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.offers: list[Offer] = []
        self.answer: Callable[[Offer], tuple[str, str]] = self.cosign

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        assert (request.method, request.path) == ("POST", "/here/add-checkpoint")
        self.offers.append(Offer.read(request.body))
        status, text = self.answer(self.offers[-1])
        writer.write(whole_answer(text.encode(), status))
        await writer.drain()

    def cosign(self, offer: Offer) -> tuple[str, str]:
        return "200 OK", str(sign(offer.note.text, KEY, NOW_S + len(self.offers)))

    @property
    def link(self) -> WitnessLink:
        """Of a process that has just started."""
        return WitnessLink(WitnessAddress(KEY.verifier, f"{self.url}/here"))


@pytest.fixture
async def witness() -> AsyncIterator[Witnessing]:
    await sync_to_async(cache.clear)()
    async with Witnessing() as running:
        yield running


async def signed(size: int = 3, seconds: float = 0) -> Signer:
    signer = make_signer(Texts(size))
    await sync_to_async(signer.sign)(after(seconds))
    return signer


async def shown(path: str = "checkpoint") -> Note:
    return Note.read((await AsyncClient().get(f"/ledger/{path}")).content)


async def test_cosignature_is_shown_with_the_checkpoint(witness: Witnessing) -> None:
    await signed()
    await witness.link.look()
    note = await shown()
    assert set(note.signed_by([KEY.verifier])) == {KEY.verifier}
    assert note == await shown("checkpoints/3")
    (stored,) = [each async for each in Cosignature.objects.all()]
    assert stored.first_at == stored.last_at
    assert round(stored.first_at.timestamp()) == NOW_S + 1
    # Nothing is offered twice.
    await sync_to_async(cache.clear)()
    await witness.link.look()
    assert len(witness.offers) == 1


async def test_each_checkpoint_is_offered_with_the_proof_that_it_extends_the_last(
    witness: Witnessing, tmp_path: Path
) -> None:
    await signed()
    (log,) = await sync_to_async(keyring.signing_keys)(NOON)
    judge = Witness(tmp_path, KEY, [log.verifier])
    judge.accept(log.name, Note.read((await SignedCheckpoint.objects.aget()).note.encode()))

    def answer(offer: Offer) -> tuple[str, str]:
        try:
            return "200 OK", judge.add_checkpoint(bytes(offer), NOW_S)
        except OfferRefused as refused:
            return f"{refused.status.value} No", str(refused)

    witness.answer = answer
    for size in (3, 5, 5, 300):
        await signed(size, size)
        await witness.link.look()
        await sync_to_async(cache.clear)()
        if size == 5:
            # As a restored database has it.
            await Cosignature.objects.all().adelete()
    assert [offer.old for offer in witness.offers] == [0, 3, 3, 0, 5, 0, 5]
    assert set((await shown()).signed_by([KEY.verifier])) == {KEY.verifier}


async def test_without_growth_it_is_cosigned_again_every_hour(witness: Witnessing) -> None:
    await signed()
    await witness.link.look()
    await Cosignature.objects.aupdate(asked_at=timezone.now() - AGAIN)
    await sync_to_async(cache.clear)()
    await witness.link.look()
    times = []
    for path in ("checkpoints/3", "checkpoint"):
        found = (await shown(path)).signed_by([KEY.verifier])
        times.append(cosigned_at_s(found[KEY.verifier].signature))
    assert times == [NOW_S + 1, NOW_S + 2]


async def test_of_two_processes_one_offers(witness: Witnessing) -> None:
    await signed()
    witness.answer = lambda offer: ("503 Away", "")
    with pytest.raises(WitnessRefused, match="503"):
        await witness.link.look()
    await witness.link.look()
    assert len(witness.offers) == 1


def forged(offer: Offer) -> tuple[str, str]:
    return "200 OK", str(sign("another text\n", KEY, NOW_S))


def by_another(offer: Offer) -> tuple[str, str]:
    return "200 OK", str(sign(offer.note.text, SigningKey.make(KEY.name, KeyType.COSIGNATURE), NOW_S))


@pytest.mark.parametrize(
    "answer",
    [
        forged,
        by_another,
        lambda offer: ("200 OK", ""),
        lambda offer: ("200 OK", "not a line\n"),
        lambda offer: ("404 Not Found", "unknown log\n"),
        lambda offer: ("409 Conflict", "many\n"),
        lambda offer: ("409 Conflict", "4\n"),
        lambda offer: ("409 Conflict", "2\n"),
        lambda offer: ("302 Found", ""),
    ],
    ids=["forged", "by another", "empty", "no line", "404", "no size", "ahead", "always", "elsewhere"],
)
async def test_witness_that_does_not_cosign_is_told_and_asked_again(
    witness: Witnessing, answer: Callable[[Offer], tuple[str, str]]
) -> None:
    await signed()
    link, witness.answer = witness.link, answer
    with pytest.raises(WitnessRefused):
        await link.look()
    assert link.fault
    assert not await Cosignature.objects.aexists()
    witness.answer = witness.cosign
    await sync_to_async(cache.clear)()
    await link.look()
    assert link.fault == ""
    assert await Cosignature.objects.acount() == 1


async def test_witness_that_is_away_is_told() -> None:
    await signed()
    await sync_to_async(cache.clear)()
    link = WitnessLink(WitnessAddress(KEY.verifier, "http://127.0.0.1:9"))
    with pytest.raises(HttpFailed):
        await link.look()
    assert link.fault


async def test_nothing_is_offered_before_something_is_signed(witness: Witnessing) -> None:
    await witness.link.look()
    assert witness.offers == []
