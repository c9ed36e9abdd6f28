"""The bundle of a publisher as a file: what verify.py needs, and verify.py."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from signals_feed.archive_access import TicksOf
from signals_feed.record import (
    ARM,
    CANCEL,
    CANDLE,
    CLOSE,
    FILL,
    OWN_TIME,
    PUBLISH,
    TICK,
    Payload,
    evidence_of,
    ms_of,
)

HERE = Path(__file__).parent
VERIFIER = HERE / "verify.py"
JUDGES = tuple(
    HERE.parent / f"{name}.py" for name in ("exits", "record", "judge", "contradictions", "venue_days")
)
# Before and after each moment, and how far apart two are between which every tick is in it.
AROUND_MS, JOINED_MS = 10_000, 120_000
README = """This bundle has every signal of a publisher, with what it takes to judge the results again:

    python3 -I verify.py bundle.zip --key KEY --ledger FILE

verify.py says at its beginning what these are. Read it before you run it, or take it from another source.
"""


class BundleEntry(NamedTuple):
    position: int
    signal: str
    payload: str
    proof: Sequence[bytes]
    """That it is in the tree of the last checkpoint."""
    is_withheld: bool = False


class BundleCheckpoint(NamedTuple):
    note: str
    """With its cosignatures."""
    proof: Sequence[bytes]
    """That it extends the one before it."""


class BundleFacts(NamedTuple):
    user_id: int
    made_ms: int
    keys: Sequence[str]
    """Of the log and its witnesses."""
    waits: Mapping[str, str]
    """Why signals past their expiry have not ended."""
    checkpoints: Sequence[BundleCheckpoint]
    """The smallest first."""


def write_bundle(
    file: IO[bytes], facts: BundleFacts, entries: Iterable[Sequence[BundleEntry]], ticks_of: TicksOf
) -> None:
    """`entries` are those of one signal after the other. The same facts give the same bytes."""
    with ZipFile(file, "w", ZIP_DEFLATED) as packed:
        for path in (VERIFIER, *JUDGES):
            folder = "" if path is VERIFIER else "judge/"
            packed.writestr(member(f"{folder}{path.name}"), path.read_bytes())
        packed.writestr(member("README.txt"), README)
        packed.writestr(member("bundle.json"), line(facts_shown(facts)))
        ticks: list[bytes] = []
        with packed.open(member("entries.jsonl"), "w") as lines:
            for of_signal in entries:
                lines.writelines(line(entry_shown(each)) for each in of_signal)
                if not any(each.is_withheld for each in of_signal):
                    record = [json.loads(each.payload) for each in of_signal]
                    ticks += map(line, windows(record, ticks_of))
        packed.writestr(member("ticks.jsonl"), b"".join(ticks))


def digest_of(judges: Iterable[Path]) -> str:
    """By which verify.py knows the modules that it executes."""
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in judges)).hexdigest()


def member(name: str) -> ZipInfo:
    made = ZipInfo(name)
    made.compress_type, made.external_attr = ZIP_DEFLATED, 0o644 << 16
    return made


def line(shown: Mapping[str, Any]) -> bytes:
    return json.dumps(shown).encode() + b"\n"


def in_base64(hashes: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(each).decode() for each in hashes]


def facts_shown(facts: BundleFacts) -> dict[str, Any]:
    checkpoints = [{"note": each.note, "proof": in_base64(each.proof)} for each in facts.checkpoints]
    return facts._asdict() | {"checkpoints": checkpoints}


def entry_shown(entry: BundleEntry) -> dict[str, Any]:
    about = {"position": entry.position, "signal": entry.signal, "proof": in_base64(entry.proof)}
    if not entry.is_withheld:
        return about | {"payload": entry.payload}
    leaf = hashlib.sha256(b"\0" + entry.payload.encode()).digest()
    return about | {"leaf": base64.b64encode(leaf).decode()}


def windows(record: Sequence[Payload], ticks_of: TicksOf) -> Iterator[dict[str, Any]]:
    """The archived ticks around what decided."""
    for since_ms, until_ms in stretches(record):
        ticks = ticks_of(record[0], since_ms, until_ms)
        if ticks is not None:
            shown = [evidence_of(tick, TICK, "") for tick in ticks]
            about = {"signal": record[0]["signal"], "since_ms": since_ms, "until_ms": until_ms}
            yield about | {"ticks": shown}


def stretches(record: Sequence[Payload]) -> list[tuple[int, int]]:
    """Around each arm, the fill, the requests and the end. After the last of them only if nothing can follow,
    and none after minutes decided."""
    decided: list[int] = []
    is_over = False
    for entry in record:
        evidence = entry.get("evidence") or {}
        if evidence.get("source") == CANDLE:
            decided = [at_ms for at_ms in decided if at_ms < ms_of(evidence["at"])]
        elif entry["kind"] in (FILL, CLOSE, PUBLISH) and evidence:
            decided.append(evidence.get("accepted_ms") or ms_of(evidence["at"]))
            is_over = entry["kind"] == CLOSE
        elif entry["kind"] in (ARM, CANCEL):
            decided.append(ms_of(entry[OWN_TIME[entry["kind"]]]))
    found: list[tuple[int, int]] = []
    for at_ms in sorted(decided):
        since_ms, until_ms = at_ms - AROUND_MS, at_ms + AROUND_MS
        if found and since_ms - found[-1][1] <= JOINED_MS:
            since_ms = found.pop()[0]
        found.append((since_ms, until_ms))
    if found and not is_over:
        found[-1] = found[-1][0], max(decided)
    return found
