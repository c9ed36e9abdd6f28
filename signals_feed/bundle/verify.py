"""Verifies a publisher's bundle offline, without the service that made it. Python 3.11 is all it needs.

    python3 -I verify.py bundle.zip --fresh --key KEY --ledger FILE --binance FOLDER

KEY is the public key of a witness, or of the log; give as many as you know. Get them, and this file, from
somebody else than the service, which could have altered both. FILE has all payloads of the ledger, one a line
(`leaf` and a hash where one is withheld), FOLDER daily files of Binance. With --fresh, for a bundle that was
made just now, one that shows how things stood earlier does not hold. All of these may be left out.

It prints a line for each signal, and ends with 1 if anything does not hold, with 2 if all holds but some is
the operator's word alone, as without the key of a witness, and else with 0.

How a signal is filled and ends does not stand here. The bundle has, in `judge`, the modules by which the
service itself judges, and they are executed if they are those that JUDGE is the digest of."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import time
from types import ModuleType
from typing import Any, NamedTuple

JUDGE = "9436939f9a0e65eb963edd296fb49cd30d04b7d7262affb6b7a7b24acf3d55a8"
MODULES = ("exits", "record", "judge", "contradictions", "venue_days")
LATE_MS, EXPIRED_MS, FRESH_MS, UNFILLED_MS = 60_000, 60_000, 7_200_000, 180_000
DEMO, OPEN = "what is of the demo may be dated back", "why what is past its expiry has not ended"
UNFILLED = "that no price filled what ended minutes later without a fill"
LATE = "what no witness saw within a minute and before its end may be dated back"
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
Payload = Mapping[str, Any]


class Refused(Exception):
    """Nothing in the bundle can be believed; the sentence says why."""


# Ed25519 (RFC 8032). Points are (x, y, z, t) with x/z, y/z, and t = xy/z.
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def add(one: Point, other: Point) -> Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * D * one[3] * other[3] % P, 2 * one[2] * other[2] % P
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P


def point_of(raw: bytes) -> Point | None:
    number = int.from_bytes(raw, "little")
    y, is_odd = number & 2**255 - 1, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (not x and is_odd):
        return None
    x = x if x % 2 == is_odd else P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    key, s = point_of(public), int.from_bytes(signature[32:], "little")
    if BASE is None or key is None or len(signature) != 64 or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    minus_key = (P - key[0], key[1], 1, P - key[3])
    terms = (NEUTRAL, BASE, minus_key, add(BASE, minus_key))
    found = NEUTRAL
    for bit in reversed(range(ORDER.bit_length())):
        found = add(found, found)
        if which := (s >> bit & 1) + 2 * (k >> bit & 1):
            found = add(found, terms[which])
    scale = pow(found[2], -1, P)
    x, y = found[0] * scale % P, found[1] * scale % P
    return (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


# The tree of the ledger (RFC 6962).
def leaf_hash(payload: bytes) -> bytes:
    return hashlib.sha256(b"\0" + payload).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """The root of entries that come one after the other."""

    def __init__(self) -> None:
        self.size = 0
        self._complete: list[bytes] = []
        """The roots of its complete subtrees, the largest first."""

    def add(self, leaf: bytes) -> None:
        size = self.size
        while size % 2:
            leaf, size = node_hash(self._complete.pop(), leaf), size // 2
        self._complete.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        *others, found = self._complete or [hashlib.sha256().digest()]
        for each in reversed(others):
            found = node_hash(each, found)
        return found


def roots_by(proof: Sequence[bytes], index: int, last: int, found: bytes) -> tuple[bytes, bytes]:
    """What the proof makes of the hash with this index, of those up to the last: the root of the tree up to
    it, and that of the whole one. Both are empty where it is of another length."""
    small = large = found
    for each in proof:
        if not last or len(each) != 32:
            return b"", b""
        if index % 2 or index == last:
            small, large = node_hash(each, small), node_hash(each, large)
            while index and not index % 2:
                index, last = index // 2, last // 2
        else:
            large = node_hash(large, each)
        index, last = index // 2, last // 2
    return (b"", b"") if last else (small, large)


def is_extended(old: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    if old == size:
        return old_root == root and not proof
    if not 0 < old < size or not proof:
        return False
    # The proof begins with the smallest complete subtree that ends the old tree, unless that is all of it.
    index, last = old - 1, size - 1
    while index % 2:
        index, last = index // 2, last // 2
    first, *others = proof if index else (old_root, *proof)
    return roots_by(others, index, last, first) == (old_root, root)


# Signed notes, and the checkpoints in them (C2SP).
class Key(NamedTuple):
    name: str
    is_witness: bool
    public: bytes

    @classmethod
    def read(cls, text: str) -> Key:
        name, _, rest = text.strip().partition("+")
        raw = b64decode(rest.partition("+")[2], validate=True)
        key = cls(name, raw[:1] == b"\4", raw[1:])
        if raw[:1] not in (b"\1", b"\4") or len(raw) != 33 or key.id.hex() != rest[:8]:
            raise ValueError(f"{text!r} is no public key of Ed25519")
        return key

    @property
    def id(self) -> bytes:
        named = self.name.encode() + (b"\n\4" if self.is_witness else b"\n\1")
        return hashlib.sha256(named + self.public).digest()[:4]


class Checkpoint(NamedTuple):
    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, note: str) -> Checkpoint:
        text, _, signed = note.rpartition("\n\n")
        lines = (line.removeprefix("— ").partition(" ") for line in signed.splitlines())
        origin, size, root = text.split("\n")[:3]
        signatures = tuple((name, b64decode(encoded)) for name, _, encoded in lines)
        return cls(origin, int(size), b64decode(root), f"{text}\n", signatures)

    def signed_s(self, key: Key) -> int | None:
        """When the witness cosigned it; 0 of a log. None where it did not sign."""
        for name, raw in self.signatures:
            if (name, raw[:4]) == (key.name, key.id):
                before = raw[4:12] if key.is_witness else b""
                at_s = int.from_bytes(before, "big")
                head = f"cosignature/v1\ntime {at_s}\n" if key.is_witness else ""
                if not is_signed(key.public, f"{head}{self.text}".encode(), raw[4 + len(before) :]):
                    raise Refused(
                        f"the signature of {name} under the first {self.size} entries does not hold"
                    )
                return at_s
        return None


class Entry(NamedTuple):
    position: int
    leaf: bytes
    proof: tuple[bytes, ...]
    signal: str
    text: str
    """Its payload; empty while prices are withheld."""

    @classmethod
    def read(cls, line: bytes) -> Entry:
        about = json.loads(line)
        text = about.get("payload", "")
        leaf = leaf_hash(text.encode()) if text else b64decode(about["leaf"])
        signal = json.loads(text)["signal"] if text else about["signal"]
        return cls(about["position"], leaf, tuple(map(b64decode, about["proof"])), signal, text)


class Bundle:
    def __init__(self, path: str) -> None:
        with zipfile.ZipFile(path) as packed:
            about = json.loads(packed.read("bundle.json"))
            self.user_id: int = about["user_id"]
            self.made_ms, self.waits = int(about["made_ms"]), dict(about["waits"])
            """Why signals past their expiry have not ended, as the operator says."""
            self.keys = [Key.read(each) for each in about["keys"]]
            self.checkpoints = [Checkpoint.read(each["note"]) for each in about["checkpoints"]]
            self.extends = [[*map(b64decode, each["proof"])] for each in about["checkpoints"]]
            self.entries = [Entry.read(line) for line in packed.read("entries.jsonl").splitlines()]
            self.windows: dict[str, list[Payload]] = defaultdict(list)
            """Stretches of archived ticks, by signal."""
            for line in packed.read("ticks.jsonl").splitlines():
                window = json.loads(line)
                self.windows[window["signal"]].append(window)
            self._load_judge({name: packed.read(f"judge/{name}.py") for name in MODULES})

    def _load_judge(self, sources: Mapping[str, bytes]) -> None:
        digests = (hashlib.sha256(source).digest() for source in sources.values())
        if hashlib.sha256(b"".join(digests)).hexdigest() != JUDGE:
            raise Refused("its judge is not that of this version of verify.py")
        sys.modules["judge"] = package = ModuleType("judge")
        for name, source in sources.items():
            module = ModuleType(f"judge.{name}")
            module.__package__ = "judge"
            sys.modules[module.__name__] = vars(package)[name] = module
            exec(compile(source, f"judge/{name}.py", "exec"), vars(module))  # noqa: S102 - see JUDGE
        judge: Any = package
        self.rules, self.ms_of, self.item_of = judge.record.RULES, judge.record.ms_of, judge.record.item_of
        self.by_windows, self.venue_days = judge.contradictions.by_windows, judge.venue_days.BinanceDays


class Report:
    def __init__(self) -> None:
        self.faults, self.trusts = 0, dict[str, None]()

    def say(self, text: str) -> None:
        """What comes out of a bundle does not draw lines of its own."""
        print("".join(letter if letter.isprintable() else "?" for letter in text))

    def tell(self, about: str, faults: Sequence[str], note: str = "") -> None:
        self.faults += bool(faults)
        self.say(f"FAULT {about}: {'; '.join(faults)}" if faults else f"holds {about}{note}")


def shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class Log:
    """The checkpoints, one extending the other, and when witnesses saw them."""

    def __init__(self, bundle: Bundle, given: Sequence[Key], report: Report, now_ms: float) -> None:
        self.checkpoints, self.last = bundle.checkpoints, bundle.checkpoints[-1]
        self.seen = list[tuple[int, int]]()
        """Of each cosignature: how many entries, and when its second began, in milliseconds."""
        # Those that the operator names, where none is given.
        named = {False: bundle.keys, True: bundle.keys} | {each.is_witness: given for each in given}
        self._witnesses = [each for each in named[True] if each.is_witness]
        self._logs = [each for each in named[False] if not each.is_witness]
        faults = [*self._faults(bundle.extends)]
        if not any(each.is_witness for each in given):
            report.trusts["no key of a witness was given"] = None
        elif max(self.seen, default=(0, 0))[0] < self.last.size:
            faults.append(f"{' and '.join(each.name for each in self._witnesses)} did not cosign all of it")
        self.until_ms = max((at_ms for _, at_ms in self.seen), default=0)
        faults += ["no witness has cosigned it of late"] if self.until_ms + FRESH_MS < now_ms else []
        about = f"log {self.last.origin} with {self.last.size} entries, of publisher {bundle.user_id}"
        report.tell(about, faults, f", last cosigned at {shown(self.until_ms)}" if self.seen else "")

    def _faults(self, extends: Sequence[Sequence[bytes]]) -> Iterator[str]:
        for each in self.checkpoints:
            seen_s = [each.signed_s(key) for key in self._witnesses]
            self.seen += [(each.size, 1_000 * at_s) for at_s in seen_s if at_s]
            # A witness looks at the signature of the log before it adds its own.
            is_known = each is not self.last and any(seen_s)
            if not is_known and not any(each.signed_s(key) is not None for key in self._logs):
                yield f"nobody whose key is known signed the first {each.size} entries"
            if {each.origin} != {key.name for key in self._logs}:
                yield f"a checkpoint is of another log, {each.origin}"
        for (old, new), proof in zip(pairwise(self.checkpoints), extends[1:], strict=True):
            if not is_extended(old.size, old.root, new.size, new.root, proof):
                yield f"the tree of {new.size} entries does not extend that of {old.size}: it was rewritten"

    def seen_ms(self, position: int) -> int:
        """When a witness first saw the entry; 0 if none did."""
        return min((at_ms for size, at_ms in self.seen if size >= position), default=0)

    def unseen_ms(self, position: int) -> int:
        """When a witness last cosigned a ledger without it."""
        return max((at_ms for size, at_ms in self.seen if size < position), default=0)


class Ledger:
    """All payloads: whether they are those of the checkpoints, and what of them concerns the publisher."""

    def __init__(self, path: str, log: Log, user_id: int, report: Report) -> None:
        self.own: dict[int, bytes] = {}
        self.newest: dict[int, str] = {}
        """When each instrument last had a tick, as far as any entry shows it."""
        self.new_from, self.written, self.withheld = 0, "", 0
        """From where on signals follow new rules, and when the last entry was written."""
        self._instruments: dict[str, int] = {}
        self._signals, self._user_id = set[str](), user_id
        roots = {each.size: each.root for each in log.checkpoints}
        report.tell(f"ledger of {log.last.size} entries", [*self._faults(path, roots, log.last.size)])

    def _faults(self, path: str, roots: Mapping[int, bytes], size: int) -> Iterator[str]:
        tree, same = Tree(), 0
        with Path(path).open("rb") as lines:
            for position, line in zip(range(1, size + 1), lines, strict=False):
                raw = line.rstrip(b"\r\n")
                is_withheld = raw.startswith(b"leaf ")
                tree.add(b64decode(raw[5:]) if is_withheld else leaf_hash(raw))
                if roots.get(position, tree) not in (tree, tree.root()):
                    yield f"of the entries {same + 1} to {position} some are not those that were signed"
                    return
                same = position if position in roots else same
                if is_withheld:
                    self.withheld += 1
                elif not self._takes(position, json.loads(raw), raw):
                    yield f"entry {position} says that it is another one, or older than the one before it"
        if tree.size < size:
            yield f"{size} entries were signed, and the file has {tree.size}"

    def _takes(self, position: int, payload: Payload, raw: bytes) -> bool:
        signal, before = payload.get("signal", ""), self.written
        if payload["kind"] == "publish":
            self._instruments[signal] = payload["instrument_id"]
            if payload["user_id"] == self._user_id:
                self._signals.add(signal)
            self.new_from = self.new_from or (position if payload.get("rules") else 0)
        if signal in self._signals:
            self.own[position] = raw
        if evidence := payload.get("evidence"):
            instrument = self._instruments.get(signal, 0)
            self.newest[instrument] = max(evidence["at"], self.newest.get(instrument, ""))
        self.written = payload.get("written", before)
        return bool(payload["position"] == position and before <= self.written)


class Signals:
    def __init__(self, bundle: Bundle, log: Log, ledger: Ledger | None, days: Any) -> None:
        self._bundle, self._log, self._ledger, self._days = bundle, log, ledger, days
        self._of: dict[str, list[Entry]] = defaultdict(list)
        for entry in sorted(bundle.entries):
            self._of[entry.signal].append(entry)
        self._ms_of, self._number, self._old, self._withheld = bundle.ms_of, 0, 0, 0

    def tell(self, report: Report) -> None:
        for signal, entries in self._of.items():
            payloads = [json.loads(each.text) for each in entries if each.text]
            try:
                faults, note = [*self._faults(entries, payloads)], self._note(entries, payloads, report)
            except UNREADABLE as error:
                faults, note = [f"it cannot be read ({type(error).__name__}: {error})"], ""
            report.tell(f"signal {signal}", faults, note)
        for position, raw in sorted(self._ledger.own.items()) if self._ledger else ():
            about = json.loads(raw)
            report.tell(f"signal {about['signal']}", [f"entry {position}, its {about['kind']}, is left out"])
        if self._withheld or (self._ledger and self._ledger.withheld):
            report.trusts["what is withheld was not judged"] = None

    def _note(self, entries: Sequence[Entry], payloads: Sequence[Payload], report: Report) -> str:
        if len(payloads) < len(entries):
            return ": its entries are in the ledger, and what they say is withheld"
        first, last, seen_ms = payloads[0], payloads[-1], self._log.seen_ms(entries[0].position)
        why, kind, demo = self._bundle.waits.get(entries[0].signal), last["kind"], first.get("demo")
        end_ms = self._ms_of(last.get("written", last["closed_at"])) if kind == "close" else 10**15
        published_ms, is_unfilled = self._ms_of(first["published_at"]), last.get("evidence", "") is None
        is_late = seen_ms + 1_000 > min(end_ms, published_ms + LATE_MS)
        # By then everybody knows what it would have earned.
        is_hidden = is_unfilled and "rules" in first and end_ms > published_ms + UNFILLED_MS
        trusts = {DEMO: demo or kind == "remove", OPEN: why, LATE: is_late, UNFILLED: is_hidden}
        report.trusts |= {each: None for each, is_so in trusts.items() if is_so}
        result = f"{last.get('close_reason')}, {last.get('pnl_r')} R"
        end = {"close": result, "remove": "removed with the demo"}.get(kind, "open")
        end = ("of the demo, " if demo else "") + end + (f", by the operator's word {why}" if why else "")
        when = f"only at {shown(seen_ms)}" if is_late else "before its end" if seen_ms else "by nobody"
        return f": {first['direction']} {first['symbol']}, {end}, witnessed {when}"

    def _faults(self, entries: Sequence[Entry], payloads: Sequence[Payload]) -> Iterator[str]:
        for each in entries:
            yield from self._unproved(each)
        if len(payloads) < len(entries):
            self._withheld += 1
            return
        publish, signal = payloads[0], entries[0].signal
        for entry, payload in zip(entries, payloads, strict=True):
            if payload["position"] != entry.position:
                yield f"entry {entry.position} says that it is {payload['position']}"
            yield from self._misdated(entry.position, payload, bool(publish.get("demo")))
        yield from self._misplaced(publish)
        if payloads[-1]["kind"] == "remove":
            if not publish.get("demo", "rules" not in publish):
                yield "it was removed, and is not of the demo"
            return
        yield from self._bundle.by_windows(payloads, self._bundle.windows[signal])
        yield from self._without_end(signal, payloads)
        for tick in (each.get("evidence") or {} for each in payloads if self._days):
            if "bid" in tick and (fault := self._days.fault(publish["symbol"], self._bundle.item_of(tick))):
                yield fault

    def _unproved(self, entry: Entry) -> Iterator[str]:
        index, (_, size, root, *_) = entry.position - 1, self._log.last
        if not 0 <= index < size or roots_by(entry.proof, index, size - 1, entry.leaf)[1] != root:
            yield f"entry {entry.position} is not in the tree that was signed"
        if self._ledger:
            self._ledger.own.pop(entry.position, b"")

    def _misdated(self, position: int, payload: Payload, is_demo: bool) -> Iterator[str]:
        unseen_ms, seen_ms, kind = self._log.unseen_ms(position), self._log.seen_ms(position), payload["kind"]
        # Only the demo may date back, while it is seeded.
        names = ("written",) if is_demo else ("written", "published_at")
        for at_ms in (self._ms_of(payload[name]) for name in names if name in payload):
            if at_ms + LATE_MS < unseen_ms:
                yield f"its {kind} is dated {shown(at_ms)}, and was not there at {shown(unseen_ms)}"
            if at_ms - LATE_MS > seen_ms > 0:
                yield f"its {kind} is dated {shown(at_ms)}, and was there at {shown(seen_ms)}"

    def _misplaced(self, publish: Payload) -> Iterator[str]:
        if publish["user_id"] != self._bundle.user_id:
            yield f"it is of publisher {publish['user_id']}"
        number, new_from = publish.get("number", 0), self._ledger.new_from if self._ledger else 0
        if publish.get("rules") != self._bundle.rules:
            self._old += 1
            if (self._number or 0 < new_from < publish["position"]) and not publish.get("demo"):
                yield "it was published by the rules of before, after the new ones had begun"
            return
        due = {self._number + 1} if self._number else {1, self._old + 1}
        if number not in due and not self._withheld:
            yield f"its running number is {number}, and that of the signal before it {self._number}"
        self._number = number

    def _without_end(self, signal: str, payloads: Sequence[Payload]) -> Iterator[str]:
        publish, ends_ms = payloads[0], self._ms_of(payloads[0]["expires_at"])
        until_ms = self._log.until_ms or self._bundle.made_ms
        if payloads[-1]["kind"] == "close" or ends_ms + EXPIRED_MS > until_ms:
            return
        newest = self._ledger.newest.get(publish["instrument_id"], "") if self._ledger else ""
        # Ticks are dated by another clock than what is written. By that of its fill it does not expire.
        ahead_ms = min(each.get("ahead_ms", 0) for each in payloads)
        own = max((each["evidence"]["at"] for each in payloads if each.get("evidence")), default="")
        if signal not in self._bundle.waits:
            yield f"it expired at {shown(ends_ms)}, and has no end"
        elif newest > own and self._ms_of(newest) > ends_ms + EXPIRED_MS - ahead_ms:
            yield f"it expired at {shown(ends_ms)}, has no end, and its instrument had a tick at {newest}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--key", action="append", default=[], metavar="KEY")
    parser.add_argument("--ledger")
    parser.add_argument("--binance", type=Path)
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args(arguments)
    report, ledger, days = Report(), None, None
    try:
        bundle = Bundle(asked.bundle)
        log = Log(bundle, [*map(Key.read, asked.key)], report, 1_000 * time() if asked.fresh else 0)
        ledger = Ledger(asked.ledger, log, bundle.user_id, report) if asked.ledger else None
        days = bundle.venue_days(asked.binance) if asked.binance else None
        Signals(bundle, log, ledger, days).tell(report)
    except (Refused, *UNREADABLE, OSError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        report.tell("bundle", [f"{type(error).__name__}: {error}"])
    if days:
        report.say(str(days))
    report.say(f"Faults: {report.faults}." if report.faults else "All that could be judged holds.")
    for each in report.trusts:
        report.say(f"It trusts the operator: {each}.")
    by = "judged by the ledger" if ledger else "NOT judged: that takes --ledger"
    report.say(f"Whether signals are left out was {by}.")
    return 1 if report.faults else 2 if report.trusts else 0


if __name__ == "__main__":
    sys.exit(main())
