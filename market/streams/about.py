"""What is said of the streams as a whole, in their document and on its page. Pure."""

from __future__ import annotations

from market.engine.past import KEEP_MS, MAX_FRAMES

from .backlog import MOST_BYTES, MOST_FRAMES, STUCK_AFTER_S
from .chaos import BURST as FRAMES_AT_ONCE
from .chaos import CYCLE_MS, EVERY, STALE_AFTER_MS, TEST
from .inbound import A_SECOND, BURST, INVALID_WITHIN_MS, MAX_BYTES, MAX_INVALID
from .messages import MAX_SYMBOLS, Chaos, Feature

INTRODUCTION = """Prices, order flow and trade signals over WebSocket, one envelope for the three paths.

Connect and send `subscribe` within 10 seconds. Data frames have no `type`, but for absorption signals and
closures; all others do. Send at most 10 messages a second (20 at once) of at most 16 KiB. The service sends a
WebSocket ping every 10 s. Every refusal is an `error`; after a fatal one the socket closes with the code
given here. `null` for what may be left out is as if it were left out. No number has an exponent: 0.00003."""
SEQ = "With the feature seq: one more than in the frame of this symbol before."
SENT = "With the feature lag: when it was sent, in milliseconds since the epoch."
FEATURES: dict[Feature, str] = {
    "seq": "Numbers the frames of each symbol, so that you see a hole and can resume. Not on signals.",
    "snapshot": "Sends the last tick of each symbol after the reply, before live ones. Not on signals.",
    "lag": "Adds to each frame when it was sent, so that you can tell our delay from the network's.",
    "heartbeat": "Sends a heartbeat after 10 s without another frame.",
    "latest": "On prices, when you read too slowly: keeps the newest tick of each symbol, with the volumes"
    " summed, and says how many were left out.",
}
_HERE = f"Only in the demo, on prices and order flow, for {TEST} when you name it"
FAULTS: dict[Chaos, str] = {
    "chaos:gap": f"{_HERE}: leaves out every frame whose seq is a multiple of {EVERY}."
    " resume on a new connection brings what was left out.",
    "chaos:duplicate": f"{_HERE}: sends one frame of {EVERY} twice.",
    "chaos:stale": f"{_HERE}: sends nothing in the last {(CYCLE_MS - STALE_AFTER_MS) // 1000} of every"
    f" {CYCLE_MS // 1000} seconds of the clock. Heartbeats go on.",
    "chaos:burst": f"{_HERE}: holds frames back and sends {FRAMES_AT_ONCE} at once,"
    " or fewer when another client asks to have TEST misbehave.",
}
LIMITS: dict[str, str] = {
    "Subscribe after connecting": "within 10 seconds",
    "Symbols in one message": f"{MAX_SYMBOLS}; subscriptions add up",
    "Size of a message": f"{MAX_BYTES // 1024} KiB",
    "Messages you send": f"{A_SECOND} a second, {BURST} at once",
    "Attempts without a valid key": "60 a minute from one address, on REST too; after that each is told"
    " how long to wait. Valid keys are never affected",
    "Invalid messages": f"the {MAX_INVALID}th within {INVALID_WITHIN_MS // 1000} seconds ends the socket",
    "Frames that wait for a slow reader": f"{MOST_FRAMES:,} or {MOST_BYTES // 1024**2} MiB,"
    f" or {STUCK_AFTER_S:.0f} seconds without progress",
    "What resume replays": f"{KEEP_MS // 1000} seconds or {MAX_FRAMES:,} frames of a symbol;"
    f" to one socket as many as are kept of all, once in {KEEP_MS // 1000} seconds",
    "What since replays": "7 days of signals",
    "Silence": "the service pings every 10 seconds, and who does not answer is gone within 30",
}
