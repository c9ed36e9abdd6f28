"""Checkpoints are offered to witnesses, and what they cosign is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.test import AsyncClient
from django.utils import timezone

from core.http import HttpFailed
from tests.local_http import LocalHttp, read_request, whole_answer
from transparency.checkpoints import Checkpoint, Note, Offer, OfferRefused, WitnessAddress, sign
from transparency.keyring import keyring
from transparency.keys import KeyType, SigningKey, cosigned_at_s
from transparency.models import Cosignature, Objection, SignedCheckpoint
from transparency.remembered import Forked
from transparency.signing import Signer
from transparency.witness import Witness
from transparency.witnesses import AGAIN, Witnesses, WitnessLink, WitnessRefused

from .ledgers import NOON, Texts, after, lose_cosignatures, make_signer

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
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        assert (request.method, request.path) == ("POST", "/here/add-checkpoint")
        self.offers.append(Offer.read(request.body))
        if self.meanwhile is not None:
            await self.meanwhile()
        status, text = self.answer(self.offers[-1])
        writer.write(whole_answer(text.encode(), status))
        await writer.drain()

    def cosign(self, offer: Offer) -> tuple[str, str]:
        return "200 OK", str(sign(offer.note.text, KEY, NOW_S + len(self.offers)))

    @property
    def address(self) -> WitnessAddress:
        return WitnessAddress(KEY.verifier, f"{self.url}/here")

    @property
    def link(self) -> WitnessLink:
        """Of a process that has just started."""
        return WitnessLink(self.address)


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
    link = witness.link
    await link.look()
    note = await shown()
    assert set(note.signed_by([KEY.verifier])) == {KEY.verifier}
    assert note == await shown("checkpoints/3")
    (stored,) = [each async for each in Cosignature.objects.all()]
    assert stored.first_at == stored.last_at
    assert round(stored.first_at.timestamp()) == NOW_S + 1
    # Nothing is offered twice.
    await sync_to_async(cache.clear)()
    await link.look()
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
            await sync_to_async(lose_cosignatures)()
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
    links = [witness.link, witness.link]
    for link in links:
        # Each asks once when it starts.
        await signed()
        await link.look()
    await signed(5, 2)
    for link in links:
        await link.look()
    assert [Checkpoint.read(offer.note.text).size for offer in witness.offers] == [3, 3, 5]


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
    # It is not over because it is too early to ask again.
    for _ in range(2):
        with pytest.raises(WitnessRefused):
            await link.look()
    assert link.fault
    assert not await Cosignature.objects.aexists()
    witness.answer = witness.cosign
    await sync_to_async(cache.clear)()
    await link.look()
    assert link.fault == ""
    assert await Cosignature.objects.acount() == 1


async def test_witness_that_is_away_is_told_and_asked_when_it_is_back(witness: Witnessing) -> None:
    """Also if it has cosigned the newest checkpoint: it may know more than the database by now."""
    await signed()
    await witness.link.look()
    link = witness.link
    await witness.__aexit__(None, None, None)
    with pytest.raises(HttpFailed):
        await link.look()
    assert link.fault
    await witness.__aenter__()
    await link.look()
    assert link.fault == ""
    assert len(witness.offers) == 2


async def test_nothing_is_offered_before_something_is_signed(witness: Witnessing) -> None:
    await witness.link.look()
    assert witness.offers == []


@pytest.fixture
async def behind(witness: Witnessing, settings: Any) -> Witnessing:
    """The last checkpoint is of three entries, and the witness has cosigned it, and then one of five."""
    settings.WITNESSES = [witness.address]
    await signed()
    await witness.link.look()
    witness.answer = lambda offer: witness.cosign(offer) if offer.old == 5 else ("409 Conflict", "5\n")
    return witness


async def test_ledger_of_which_a_witness_knows_more_is_neither_signed_nor_written_on(
    behind: Witnessing,
) -> None:
    signer, link = make_signer(Texts(4)), behind.link
    for _ in range(2):
        with pytest.raises(WitnessRefused):
            await link.look()
    for act in (signer.sign, signer.look):
        with pytest.raises(Forked):
            await sync_to_async(act)(after(9_000))
    with pytest.raises(Forked):
        await sync_to_async(signer.check)(4)
    # The missing entries are there again.
    signer = await signed(5, 9_000)
    await sync_to_async(signer.check)(5)
    await sync_to_async(cache.clear)()
    await link.look()
    assert not await Objection.objects.aexists()


async def test_ledger_that_is_not_the_one_that_a_witness_knows_is_neither_signed_nor_written_on(
    behind: Witnessing, settings: Any
) -> None:
    behind.answer = lambda offer: ("422 Unprocessable Entity", "")
    with pytest.raises(WitnessRefused):
        await behind.link.look()
    for count in (3, 9_000):
        with pytest.raises(Forked):
            await sync_to_async(make_signer(Texts(3)).check)(count)
    # Its word counts as long as it is asked.
    settings.WITNESSES = []
    await sync_to_async(make_signer(Texts(3)).check)(3)


async def test_witness_that_was_offered_more_by_another_process_has_no_objection(behind: Witnessing) -> None:
    behind.meanwhile = partial(signed, 5, 9)
    await behind.link.look()
    assert not await Objection.objects.aexists()


async def test_process_waits_at_its_start_until_witnesses_have_answered(
    witness: Witnessing, settings: Any
) -> None:
    settings.WITNESSES, settings.DEADLINES_TIMES = [witness.address], 20
    await signed()
    running = Witnesses()
    await running.start()
    assert len(witness.offers) == 1
    await running.stop()
