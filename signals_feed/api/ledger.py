"""GET /api/signals/ledger: the ledger entries of all signals, chained by hash, and examples of them for the
documents."""

import hashlib
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.models import User
from core.contract.answers import Answer
from core.contract.parameters import IntegerParameter, QuerySerializer, describes
from core.plain_json import encode
from core.struct_schemas import openapi
from core.threads import in_thread_promptly
from core.times import epoch_ms, read_iso
from core.viewset import ApiViewSet
from instruments.models import Instrument
from signals_feed.ledger.ledger import (
    FIRST_PREVIOUS_HASH,
    LedgerEntry,
    LedgerHead,
    Payload,
    canonical,
    chained,
    closure_payload,
    plain,
    publication_payload,
    published_names,
)
from signals_feed.models import LIFETIME, Evidence, Signal
from signals_feed.wire import CLOSED_SAMPLE

# The signal of the examples: as rows, from which a proof and the ledger's entries are made.
FACTS: dict[str, Any] = dict(  # noqa: C408 - as a signal is made
    id=CLOSED_SAMPLE.id,
    user=User(pk=7, username=CLOSED_SAMPLE.user),
    instrument=Instrument(pk=2, symbol=CLOSED_SAMPLE.symbol, pip_size=Decimal("0.01")),
    direction=CLOSED_SAMPLE.direction,
    entry=Decimal("2651.4"),
    stop_loss=Decimal("2660.4"),
    take_profit=Decimal("2633.4"),
    tradable_price=Decimal("2651.4"),
    published_at=read_iso(CLOSED_SAMPLE.timestamp),
    expires_at=read_iso(CLOSED_SAMPLE.timestamp) + LIFETIME,
    status=CLOSED_SAMPLE.status,
    close_price=Decimal("2633.4"),
    closed_at=read_iso(CLOSED_SAMPLE.closed_at),
    close_reason=CLOSED_SAMPLE.close_reason,
    pnl=Decimal("1800.0"),
    pnl_percent=Decimal("0.6789"),
    pnl_r=Decimal("2.0000"),
    best_r=Decimal("2.0000"),
    worst_r=Decimal("-0.7444"),
)
SAMPLE_SIGNAL = Signal(**FACTS)
FILLED_AT = read_iso("2026-11-19T15:40:03.907Z")
FILLED_SIGNAL = Signal(**FACTS, rules=2, fill_price=Decimal("2651.44"), filled_at=FILLED_AT)
FROM_VENUE = {"feed": "oanda", "simulated": False}
SAMPLE_ARM = {
    "for": "fill",
    "number": 1,
    "at": "2026-11-19T15:40:02.814Z",
    "epoch": "k3v9x2q7",
    "seq": 918_206,
    "wait_ms": 1_000,
}
SAMPLE_ENTRY = Evidence(
    source="tick",
    rule="quote",
    at=read_iso("2026-11-19T15:40:02.611Z"),
    epoch="k3v9x2q7",
    seq=918_204,
    bid=Decimal("2651.4"),
    ask=Decimal("2651.62"),
)
SAMPLE_FILL = Evidence(
    source="tick",
    rule="fill",
    at=FILLED_AT,
    epoch="k3v9x2q7",
    seq=918_209,
    bid=Decimal("2651.44"),
    ask=Decimal("2651.66"),
    accepted_ms=epoch_ms(FILLED_AT) + 41,
    **FROM_VENUE,
)
EXIT: dict[str, Any] = dict(  # noqa: C408 - as evidence is made
    source="tick",
    rule="target",
    at=read_iso(CLOSED_SAMPLE.closed_at),
    epoch="k3v9x2q7",
    seq=1_204_511,
    bid=Decimal("2633.11"),
    ask=Decimal("2633.33"),
    best=Decimal("2633.4"),
    worst=Decimal("2658.1"),
)
SAMPLE_EXIT = Evidence(**EXIT)
FILLED_EXIT = Evidence(**EXIT, accepted_ms=epoch_ms(FACTS["closed_at"]) + 38, **FROM_VENUE)
SAMPLE_EVIDENCE = {"entry": SAMPLE_ENTRY, "fill": SAMPLE_FILL, "exit": FILLED_EXIT}


ABOUT = (
    "Every fact about signals in commit order: their publications, fills, cancellations and closures, what "
    "their publishers asked for, and the removal of each signal of a demo that is switched off; and the days "
    "of the archive that are sealed. The entries are chained: `hash` is the SHA-256, in "
    "hexadecimal, of the UTF-8 bytes of `previous` followed by `payload`, exactly as shown here, and "
    "`previous` is the `hash` of the previous entry (64 zeros for the first). Continue with `after` = "
    "the last position you have. A publisher is named by a pseudonym, `publisher-` and a number; "
    "`/api/signals/{id}` says whose signal it is now. Keep a head: if the ledger ever shows another hash "
    "at its position, the past has been altered.\n\n"
    "| Kind | Members of `payload` besides `position`, `kind` and `signal` |\n"
    "|---|---|\n"
    "| `publish` | `user` (the pseudonym), `user_id`, `symbol`, `instrument_id`, `direction`, `entry`, "
    "`stop_loss`, `take_profit`, `tradable_price` (what the market offered), `published_at`, `expires_at`, "
    "`evidence`, `number` (1 for the publisher's first signal, and so on without holes), `demo` (whether it "
    "is the demo's, for ever), `written` |\n"
    "| `cancel` | `cancel_reason`, `cancelled_at`, `written`; the signal closes at the next price |\n"
    "| `close` | `close_price`, `closed_at`, `close_reason`, `pnl`, `pnl_percent`, `pnl_r`, `best_r`, "
    "`worst_r`, `pip_size`, `evidence`, `written` |\n"
    "| `remove` | `written` |\n"
    "| `arm` | `for` (what the engine begins to look for a tick for: fill, close_request or cancel; or why "
    "the signal ends at once while a cancellation by staff waits: kind_changed, deactivated or withheld), "
    "`number`, `at`, `epoch`, `seq`, `wait_ms`, `unsettled_ms`, `ahead_ms` (how far the engine's "
    "clock was ahead of the venue's, by which ticks are dated), `written` |\n"
    "| `fill` | `fill_price`, `evidence`, `written` |\n"
    "| `close_request` | `at`, `written` |\n"
    "| `archive` | `day`, `manifest_sha256`, `written`: a day of the archive was sealed, and its manifest "
    "has this SHA-256; `signal` is all zeros |\n\n"
    "Prices and results are strings with every digit, and times have microseconds. `written` is the time of "
    "the database at which the entry was written, and never earlier than that of the entry before it. "
    "`evidence` is "
    "that of `GET /api/signals/{id}/proof`, with `at` for its `time`, `accepted_ms` for its `accepted_at`, "
    "and without `rule_text`; it is null in entries about signals that are older than the evidence. Those "
    "entries may lack `pip_size`, and entries of version 0.1.0 lack `written`, `number` and `demo`.\n\n"
    "There is no `arm`, `fill` or `close_request` of a signal unless its `publish` says `rules`: 2. Such a "
    "`publish` also has `rank_unit`, `pip_size` and `stale_ms`; its `close` says `rules` again, its `cancel` "
    "has `cause` and `unsettled_ms`, and its evidence has `feed`, `simulated`, `accepted_ms`, `settled` and "
    "`unsettled_ms`."
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
    signal: Annotated[
        str, Meta(description="The signal that the entry is about; zeros for a day of the archive.")
    ]
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


WRITTEN = {
    "publish": plain(SAMPLE_SIGNAL.published_at + timedelta(milliseconds=12)),
    "close": plain(read_iso(CLOSED_SAMPLE.closed_at) + timedelta(milliseconds=140)),
}


def sample_item(position: int, kind: str, facts: Payload, previous: str) -> LedgerItem:
    signal = str(SAMPLE_SIGNAL.pk)
    about = {"position": position, "kind": kind, "signal": signal, "written": WRITTEN[kind]}
    text = canonical(about | facts)
    return LedgerItem(position, kind, signal, text, previous, chained(previous, text))


PUBLICATION = sample_item(
    1,
    "publish",
    publication_payload(SAMPLE_SIGNAL, SAMPLE_ENTRY)
    | published_names(SAMPLE_SIGNAL)
    | {"number": 41, "demo": False},
    FIRST_PREVIOUS_HASH,
)
CLOSURE = sample_item(
    2, "close", closure_payload(SAMPLE_SIGNAL, SAMPLE_EXIT) | {"pip_size": "0.01"}, PUBLICATION.hash
)
SAMPLE = Ledger(
    head=HeadOfLedger(431, hashlib.sha256(b"431").hexdigest()), items=[PUBLICATION, CLOSURE], count=2
)


class LedgerActions(ApiViewSet):
    """Of the signals: `/api/signals/ledger`."""

    @action(detail=False)  # type: ignore[type-var]
    @describes(
        "listLedger",
        Ledger,
        "The ledger of signals, chained by hash",
        tag="Signals",
        examples={"The first two entries": SAMPLE},
        details=ABOUT,
        query=[LedgerQuerySerializer],
    )
    async def ledger(self, request: Request) -> Answer:
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
