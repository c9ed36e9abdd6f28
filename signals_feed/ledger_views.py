"""GET /api/signals/{id}/proof and /api/signals/ledger: what it takes to check a result, and all of them."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode
from accounts.exceptions import NotFound
from accounts.schema import describes
from accounts.threads import in_thread_promptly

from .ids import NO_SUCH_SIGNAL, uuid_of
from .models import LedgerEntry, LedgerHead, Signal
from .proof_items import describe_ledger, describe_proof
from .proof_serializers import LedgerQuerySerializer, LedgerSerializer, ProofSerializer

PROOF = (
    "Everything that the result follows from: the quote at entry, what closed it, the rule, and the"
    " arithmetic in steps. Put the `exact` inputs into the formulas with decimal arithmetic, round where"
    " `decimals` says so, half away from zero, and you get every `exact` that stands there, `pnl` to the"
    " last digit."
)
LEDGER = (
    "Every publication, cancellation and closure in commit order, chained: `hash` is the SHA-256, in"
    " hexadecimal, of the UTF-8 bytes of `previous` followed by `payload`, exactly as they stand here, and"
    " `previous` is the `hash` of the entry before (64 noughts for the first). Read on with `after` = the"
    " last position you have. Keep a head: if the ledger ever shows another hash at its position, the past"
    " was altered."
)


class ProofViewSet(ApiViewSet):
    @describes(
        "getSignalProof",
        ProofSerializer,
        "How a signal's result came about, to be computed again",
        tag="Signals",
        details=PROOF,
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, request: HttpRequest, id: str) -> Answer:  # noqa: A002 - the name in the path
        body = await in_thread_promptly(read_proof, id)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


class LedgerViewSet(ApiViewSet):
    @describes(
        "listLedger",
        LedgerSerializer,
        "The ledger of signals, chained by hash",
        tag="Signals",
        details=LEDGER,
        query=[LedgerQuerySerializer],
        refused_queries=["limit=0", "after=-1"],
    )
    async def list(self, request: HttpRequest) -> Answer:
        wanted = self.parameters(request, LedgerQuerySerializer)
        return Answer(await in_thread_promptly(read_ledger, wanted["after"], wanted["limit"]))


def read_proof(signal_id: str) -> bytes | None:
    pk = uuid_of(signal_id)
    if pk is None:
        return None
    told = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = told.filter(pk=pk).first()
    if signal is None:
        return None
    return encode(describe_proof(signal, LedgerEntry.objects.filter(signal=pk)))


def read_ledger(after: int, limit: int) -> bytes:
    head = LedgerHead.objects.now()
    # What was added since the head was read is for the next page.
    entries = LedgerEntry.objects.filter(position__gt=after, position__lte=head.position).order_by("position")
    return encode(describe_ledger(head, list(entries[:limit])))
