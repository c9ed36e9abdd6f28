"""The rules by which a price was found, named in the evidence and in the ledger. Pure."""

from __future__ import annotations

QUOTE, TARGET, STOP, CURRENT = "quote", "target", "stop", "current"
STOP_AT_OPEN, STOP_AT_WORST, WORST = "stop_at_open", "stop_at_worst", "worst"

RULES = {
    QUOTE: "A buyer pays the ask and a seller gets the bid; the worse of this and the entry counts.",
    TARGET: "The target fills at its own price.",
    STOP: "The stop fills at the first tradable price at or beyond it.",
    CURRENT: "It closes at the current price of the exit side: the bid for a buy, the ask for a sell.",
    STOP_AT_OPEN: "The minute opened at or beyond the stop, which fills at that first price.",
    STOP_AT_WORST: "The minute reached the stop, and does not say at which price first: its worst counts.",
    WORST: "The signal had ended, and the minute does not say at which price: its worst counts.",
}
