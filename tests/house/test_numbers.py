"""No number that we send has an exponent: all that is served is encoded in one place."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "status", "news", "signals_feed", "market", "instruments", "accounts")
ENCODES = re.compile(r"json\.encode\(|json\.Encoder\(|json\.dumps\(|JsonResponse\(")
# What venues, models, engines and the ledger are told, what is spelled out beside it, and what has no number.
OTHERWISE = {
    "accounts/event_channel.py": "between processes",
    "accounts/plain_json.py": "the place",
    "config/message_words.py": "spelled out",
    "config/readiness/monitor.py": "between processes",
    "config/readiness/probes.py": "texts alone",
    "market/engine/feeds/binance.py": "to the venue",
    "market/engine/feeds/binance_symbols.py": "to the venue",
    "market/engine/feeds/kraken.py": "to the venue",
    "market/engine/files/recording.py": "spelled out",
    "market/engine/status.py": "between processes",
    "market/ingest/messages.py": "what came, as it came",
    "market/streams/frames.py": "spelled out where a number needs it",
    "market/streams/reading.py": "what came, as it came",
    "news/analysis/opinion.py": "to a language model",
    "news/language/model.py": "to a language model",
    "news/language/transport.py": "to a language model",
    "news/sentiment/weights.py": "a file of the model",
    "signals_feed/payloads.py": "the ledger, whose numbers are texts",
    "signals_feed/publish_pages.py": "prices as texts, for our own page",
}


def test_json_is_encoded_in_one_place() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if ENCODES.search(path.read_text())
    }

    assert found == OTHERWISE.keys(), "accounts.plain_json encodes what is served"
