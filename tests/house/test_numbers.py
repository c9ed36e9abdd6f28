"""No number that we send has an exponent: all that is served is encoded in one place."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "config",
    "operations",
    "status",
    "news",
    "signals_feed",
    "market",
    "instruments",
    "accounts",
    "core",
    "serving",
    "demo",
    "pages",
    "analysis",
)
ENCODES = re.compile(r"json\.encode\(|json\.Encoder\(|json\.dumps\(|JsonResponse\(")
# What venues, models, engines and the ledger are told, what is spelled out beside it, and what has no number.
OTHERWISE = {
    "accounts/ending/traces.py": "names alone, for Django to read",
    "core/events/outbox.py": "between processes",
    "core/plain_json.py": "the place",
    "operations/copying/archive.py": "the manifest of a backup",
    "operations/copying/unfinished.py": "a note of whole numbers",
    "operations/copying/text.py": "between databases",
    "pages/documents/reference/operations.py": "spelled out",
    "pages/documents/samples.py": "no number with a fraction",
    "pages/documents/reference/streams.py": "spelled out",
    "serving/readiness/monitor.py": "between processes",
    "serving/readiness/answers.py": "texts alone",
    "market/engine/files/recording.py": "spelled out",
    "market/engine/status.py": "between processes",
    "market/push/intake.py": "what came, as it came",
    "market/streams/wire.py": "spelled out where a number needs it",
    "market/streams/protocol/reading.py": "what came, as it came",
    "analysis/opinion.py": "to a language model",
    "news/language_models.py": "to a language model",
    "news/language/transport.py": "to a language model",
    "news/sentiment/linear.py": "a file of the model",
    "signals_feed/ledger/ledger.py": "the ledger, whose numbers are texts",
    "signals_feed/publishing/pages.py": "prices as texts, for our own page",
}
# Whatever speaks to a venue encodes what that venue asks for.
TO_VENUES = "market/engine/feeds/venues/"


def test_json_is_encoded_in_one_place() -> None:
    found = {
        path
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        if not (path := str(file.relative_to(ROOT))).startswith(TO_VENUES)
        and ENCODES.search(file.read_text())
    }

    new, gone = sorted(found - OTHERWISE.keys()), sorted(OTHERWISE.keys() - found)
    assert not new, f"{', '.join(new)}: let core.plain_json encode it, or say in OTHERWISE who reads it"
    assert not gone, f"{', '.join(gone)}: encodes nothing any more; take it out of OTHERWISE"
