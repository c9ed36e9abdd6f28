"""GET /api/signals/ledger: the ledger entries of all signals, chained by hash."""

import hashlib
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.parameters import IntegerParameter, QuerySerializer
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import openapi
from core.threads import in_thread_promptly
from signals_feed.ledger.ledger import FIRST_PREVIOUS_HASH, LedgerEntry, LedgerHead, chained
from signals_feed.wire import CLOSED_SAMPLE

ABOUT = (
    "Every publication, cancellation and closure in commit order, chained: `hash` is the SHA-256, in "
    "hexadecimal, of the UTF-8 bytes of `previous` followed by `payload`, exactly as shown here, and "
    "`previous` is the `hash` of the previous entry (64 zeros for the first). Continue with `after` = "
    "the last position you have. A publisher is named by a pseudonym, `publisher-` and a number; "
    "`/api/signals/{id}` says whose signal it is now. Keep a head: if the ledger ever shows another hash "
    "at its position, the past has been altered."
)
Position = Annotated[int, Meta(ge=1, description="Place in the ledger, without gaps.")]
Kind = Annotated[str, openapi(enum=LedgerEntry.Kind.values, description="What the entry records.")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class LedgerQuerySerializer(QuerySerializer):
    after = IntegerParameter(
        default=0, min_value=0, max_value=999_999_999, help_text="Only entries after this position."
    )
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of entries.")


class HeadOfLedger(msgspec.Struct):
    component: ClassVar[str] = "LedgerHead"

    position: Annotated[int, Meta(ge=0, description="Of the last entry; positions have no gaps.")]
    hash: Annotated[Hash, Meta(description="Of the last entry; 64 zeros before the first.")]


class LedgerItem(msgspec.Struct):
    position: Position
    kind: Kind
    signal: Annotated[str, Meta(description="The signal that the entry is about.")]
    payload: Annotated[
        str,
        Meta(description="The facts as JSON text, hashed exactly as shown here, so keep it byte for byte."),
    ]
    previous: Annotated[Hash, Meta(description="Hash of the previous entry; 64 zeros for the first.")]
    hash: Annotated[
        Hash,
        Meta(description="SHA-256 of the UTF-8 bytes of `previous` followed by `payload`, in hexadecimal."),
    ]


class Ledger(msgspec.Struct):
    head: Annotated[HeadOfLedger, Meta(description="Where the ledger ends now.")]
    items: Annotated[list[LedgerItem], Meta(description="Oldest first.")]
    count: Annotated[int, Meta(ge=0, description="Entries in this response.")]


FIRST_PAYLOAD = (
    '{"direction":"sell","entry":"2651.4","kind":"publish","position":1,'
    f'"signal":"{CLOSED_SAMPLE.id}","stop_loss":"2660.4","take_profit":"2633.4","user":"publisher-7"}}'
)
FIRST_HASH = chained(FIRST_PREVIOUS_HASH, FIRST_PAYLOAD)
SAMPLE = Ledger(
    head=HeadOfLedger(431, hashlib.sha256(b"431").hexdigest()),
    items=[LedgerItem(1, "publish", CLOSED_SAMPLE.id, FIRST_PAYLOAD, FIRST_PREVIOUS_HASH, FIRST_HASH)],
    count=1,
)


class LedgerViewSet(KeyedViewSet):
    @describes(
        "listLedger",
        Ledger,
        "The ledger of signals, chained by hash",
        tag="Signals",
        examples={"The first entry": SAMPLE},
        details=ABOUT,
        query=[LedgerQuerySerializer],
        refused_queries=["limit=0", "after=-1"],
    )
    async def list(self) -> Answer:
        wanted = self.parameters(LedgerQuerySerializer)
        return Answer(await in_thread_promptly(read_ledger, wanted["after"], wanted["limit"]))


def read_ledger(after: int, limit: int) -> bytes:
    head = LedgerHead.objects.now()
    # Entries added after the head was read belong to the next page.
    entries = LedgerEntry.objects.filter(position__gt=after, position__lte=head.position).order_by("position")
    items = [
        LedgerItem(each.position, each.kind, str(each.signal), each.payload, each.previous, each.hash)
        for each in entries[:limit]
    ]
    return encode(Ledger(HeadOfLedger(head.position, head.hash), items, len(items)))
