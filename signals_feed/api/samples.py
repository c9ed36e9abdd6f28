"""The signal of the examples: as rows, from which a proof and the ledger's entries are made."""

from decimal import Decimal
from typing import Any

from accounts.models import User
from core.times import epoch_ms, read_iso
from instruments.models import Instrument
from signals_feed.models import LIFETIME, Evidence, Signal
from signals_feed.wire import CLOSED_SAMPLE

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
