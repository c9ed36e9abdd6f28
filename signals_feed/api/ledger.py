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
from signals_feed.ledger.ledger import (
    FIRST_PREVIOUS_HASH,
    LedgerEntry,
    LedgerHead,
    Payload,
    canonical,
    chained,
    closure_payload,
    publication_payload,
    published_names,
)

from .samples import SAMPLE_ENTRY, SAMPLE_EXIT, SAMPLE_SIGNAL

ABOUT = (
    "Every publication, cancellation and closure in commit order, and the removal of each signal of a demo "
    "that is switched off. The entries are chained: `hash` is the SHA-256, in "
    "hexadecimal, of the UTF-8 bytes of `previous` followed by `payload`, exactly as shown here, and "
    "`previous` is the `hash` of the previous entry (64 zeros for the first). Continue with `after` = "
    "the last position you have. A publisher is named by a pseudonym, `publisher-` and a number; "
    "`/api/signals/{id}` says whose signal it is now. Keep a head: if the ledger ever shows another hash "
    "at its position, the past has been altered.\n\n"
    "| Kind | Members of `payload` besides `position`, `kind` and `signal` |\n"
    "|---|---|\n"
    "| `publish` | `user` (the pseudonym), `user_id`, `symbol`, `instrument_id`, `direction`, `entry`, "
    "`stop_loss`, `take_profit`, `tradable_price` (what the market offered), `published_at`, `expires_at`, "
    "`evidence` |\n"
    "| `cancel` | `cancel_reason`, `cancelled_at`; the signal closes at the next price |\n"
    "| `close` | `close_price`, `closed_at`, `close_reason`, `pnl`, `pnl_percent`, `pnl_r`, `best_r`, "
    "`worst_r`, `pip_size`, `evidence` |\n"
    "| `remove` | none |\n\n"
    "Prices and results are strings with every digit, and times have microseconds. `evidence` is "
    "that of `GET /api/signals/{id}/proof`, with `at` for its `time` and without `rule_text`; it is null "
    "in entries about signals that are older than the evidence. Those entries may lack `pip_size`."
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
        Meta(
            description="The facts of this `kind` as JSON text, hashed exactly as shown here, so keep it "
            "byte for byte."
        ),
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


def sample_item(position: int, kind: str, facts: Payload, previous: str) -> LedgerItem:
    signal = str(SAMPLE_SIGNAL.pk)
    text = canonical({"position": position, "kind": kind, "signal": signal} | facts)
    return LedgerItem(position, kind, signal, text, previous, chained(previous, text))


PUBLICATION = sample_item(
    1,
    "publish",
    publication_payload(SAMPLE_SIGNAL, SAMPLE_ENTRY) | published_names(SAMPLE_SIGNAL),
    FIRST_PREVIOUS_HASH,
)
CLOSURE = sample_item(
    2, "close", closure_payload(SAMPLE_SIGNAL, SAMPLE_EXIT) | {"pip_size": "0.01"}, PUBLICATION.hash
)
SAMPLE = Ledger(
    head=HeadOfLedger(431, hashlib.sha256(b"431").hexdigest()), items=[PUBLICATION, CLOSURE], count=2
)


class LedgerViewSet(KeyedViewSet):
    @describes(
        "listLedger",
        Ledger,
        "The ledger of signals, chained by hash",
        tag="Signals",
        examples={"The first two entries": SAMPLE},
        details=ABOUT,
        query=[LedgerQuerySerializer],
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
