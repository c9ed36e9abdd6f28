"""A process that serves looks at the ledger by itself."""

from __future__ import annotations

import httpx
import pytest
from django.db import OperationalError

from tests.client import Server
from tests.patience import PATIENCE_S, wait_until
from tests.signals_feed.published_signals import make_published
from transparency.models import SignedCheckpoint
from transparency.remembered import Forked
from transparency.signing import Following

from .ledgers import NOON, Texts, make_signer

pytestmark = pytest.mark.services


def newest_size() -> int:
    newest = SignedCheckpoint.objects.newest()
    return -1 if newest is None else newest.size


@pytest.mark.served
def test_what_is_published_is_signed_and_shown_to_anybody(server: Server) -> None:
    wait_until(lambda: newest_size() == 0)
    make_published()
    wait_until(lambda: newest_size() == 1)
    assert "\n1\n" in httpx.get(f"{server.url}/ledger/checkpoint", timeout=PATIENCE_S).text


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("known_file")
async def test_ledger_that_lost_entries_is_told_until_they_are_back() -> None:
    ledger = Texts(3)
    following = Following(make_signer(ledger))
    await following.look()
    await SignedCheckpoint.objects.aupdate(signed_at=NOON)
    lost = ledger.all.pop()
    with pytest.raises(Forked):
        await following.look()
    assert following.fault
    ledger.all.append(lost)
    await following.look()
    assert following.fault == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("known_file")
async def test_database_that_does_not_answer_is_told_as_well() -> None:
    ledger = Texts(3)
    following = Following(make_signer(ledger))

    def fail() -> None:
        raise OperationalError

    ledger.on_read = fail
    with pytest.raises(OperationalError):
        await following.look()
    assert following.fault == "OperationalError"
