"""Honest ledgers with their log and a witness, out of seeds, and the bundles of their publishers."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import chdir, redirect_stdout
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

from signals_feed.bundle import verify as verifier
from signals_feed.bundle.writing import (
    VERIFIER,
    BundleCheckpoint,
    BundleEntry,
    BundleFacts,
    write_bundle,
)
from signals_feed.exits import Minute, Tick
from signals_feed.ledger.ledger import canonical
from signals_feed.record import Payload, ms_of
from tests.signals_feed.honest_engine import START_MS, Entry, HonestEngine, Plan, half_away, iso
from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, sign
from transparency.keys import KeyType, SigningKey
from transparency.merkle import Place, leaf_hash

PUBLISHERS = 3
CAUSES = 5
Told = tuple[list[Entry], list[Tick | Minute]]


class Signal(NamedTuple):
    pk: str
    user_id: int
    plan: Plan | None
    """None for one by the rules of before."""
    start_ms: int
    seed: int

    def told(self) -> Told:
        """Its entries, and the market while it was watched."""
        if self.plan is None:
            return old_record(Random(self.seed), self.start_ms)
        engine = HonestEngine(self.plan, self.start_ms)
        return engine.entries, engine.market


def make_plan(rng: Random) -> Plan:
    def numbers(what: str) -> tuple[int, ...]:
        if what == "tick":
            move = rng.choice([rng.randint(-4, 4), rng.randint(-4, 4), -60, -25, 25, 60])
            return move, rng.randint(0, 4), rng.choice([0, 0, 300]), rng.choice([1, 1, 1, 0])
        return {"minute": (3, rng.randint(0, 9), 2), "cancel": (rng.randrange(CAUSES),)}.get(what, ())

    kinds = ["tick"] * 12 + ["minute", "cancel", "request", "restart", "look"]
    whats = rng.choices(kinds, k=rng.randint(3, 20))
    steps = [(rng.choice([1, 999, rng.randint(1, 3_000), 25_000]), what, numbers(what)) for what in whats]
    heard = rng.choice([10, 10, 4_000, 5_001]), "look", ()
    distances = rng.randint(0, 3), rng.randint(6, 40), rng.randint(6, 40)
    ahead_ms = 3_600_000 * (distances[1] % 3 - 1)
    return Plan(rng.random() < 0.5, *distances, rng.choice([5_000, 10**9]), 40, [heard, *steps], ahead_ms)


def old_record(rng: Random, start_ms: int) -> Told:
    """A buy by the rules of before, until it ends by a level."""
    bid, stop, target = 1_000, 980, 1_030
    market: list[Tick | Minute] = [quote(bid, start_ms - 5_000, 40)]
    shown = {"source": "tick", "rule": "quote", "at": iso(start_ms - 5_000), "epoch": "old", "seq": 40}
    terms = {"direction": "buy", "entry": "1002", "stop_loss": str(stop), "take_profit": str(target)}
    times = {"published_at": iso(start_ms), "expires_at": iso(start_ms + 10**9)}
    entries: list[Entry] = [{"kind": "publish", "tradable_price": "1002", **terms, **times}]
    entries[0]["evidence"] = shown | {"bid": "1000", "ask": "1002"}
    seen = [bid]
    while stop < bid < target:
        bid += rng.choice([-9, -4, 4, 9])
        at_ms = start_ms + 1_000 * len(seen)
        seen.append(bid)
        market.append(quote(bid, at_ms, 40 + len(market)))
    price, best, worst = min(bid, target), min(max(seen), target), min(seen)
    rule, reason = ("stop", "stop_loss") if bid <= stop else ("target", "take_profit")
    in_r = [half_away(Fraction(each - 1_002, 22), 4) for each in (price, best, worst)]
    figures = dict(zip(("pnl_r", "best_r", "worst_r"), in_r, strict=True)) | {"pip_size": "0.25"}
    figures |= {"pnl": half_away(Fraction(price - 1_002) * 4, 1)}
    figures |= {"pnl_percent": half_away(Fraction(price - 1_002, 1_002) * 100, 4)}
    how = {"close_price": str(price), "close_reason": reason, "closed_at": iso(at_ms)}
    by = {"source": "tick", "rule": rule, "at": iso(at_ms), "epoch": "old", "seq": 39 + len(market)}
    by |= {"bid": str(bid), "ask": str(bid + 2), "best": str(best), "worst": str(worst)}
    entries.append({"kind": "close", **how, **figures, "evidence": by})
    return entries, market


def quote(bid: int, at_ms: int, seq: int) -> Tick:
    return Tick(Decimal(bid), Decimal(bid + 2), at_ms, "old", seq)


class World:
    """The signals of an installation, what its ledger says of them, and what was signed when."""

    def __init__(self, signals: Sequence[Signal], rng: Random) -> None:
        self.log = SigningKey("example.com/ledger", KeyType.ED25519, rng.randbytes(32))
        self.witness = SigningKey("witness.example", KeyType.COSIGNATURE, rng.randbytes(32))
        self.signals = [*signals]
        self.markets = {each.pk: each.told()[1] for each in signals if rng.random() < 0.7}
        """As far as it is archived."""
        self.withheld = set[str]()
        self.tell(written(self.signals), rng)

    def tell(self, entries: list[Entry], rng: Random) -> None:
        """What the ledger says, and what the witness sees of it while it grows."""
        self.entries, self.texts = entries, texts_of(entries)
        sizes = {len(entries), *(rng.randint(1, len(entries)) for _ in range(4))}
        notes = {size: self.cosigned(size) for size in sizes}
        # Soon after each publication, or nobody could say that it is not dated back.
        for position, entry in enumerate(entries, 1):
            if entry["kind"] == "publish":
                notes[position] = self.cosigned(position, dated_ms(entry) + 500)
        self.notes = {size: notes[size] for size in sorted(notes)}

    def cosigned(self, size: int, seen_ms: int = 0) -> Note:
        note = signed(self.texts, size, self.log)
        seen_ms = seen_ms or max(map(dated_ms, self.entries[:size])) + 2_000
        return note._replace(signatures=(*note.signatures, sign(note.text, self.witness, seen_ms // 1_000)))

    def bundle(self, user_id: int) -> bytes:
        return bundle_of(self, user_id, self.texts, [*self.notes.values()])


def make_world(seed: int, count: int = 6) -> World:
    """The first third of its signals follow the rules of before."""
    rng, signals, at_ms = Random(seed), list[Signal](), START_MS
    for number in range(count):
        at_ms += rng.randrange(20_000, 3_000_000)
        plan = None if number < count // 3 else make_plan(rng)
        pk = str(UUID(bytes=rng.randbytes(16)))
        signals.append(Signal(pk, 1 + rng.randrange(PUBLISHERS), plan, at_ms, rng.randrange(2**32)))
    return World(signals, rng)


def dated_ms(entry: Entry) -> int:
    return ms_of(entry.get("written") or entry.get("closed_at") or entry["published_at"])


def written(signals: Sequence[Signal]) -> list[Entry]:
    """The entries of all, in order; positions and running numbers come last."""
    found: list[Entry] = []
    for number, each in enumerate(signals):
        who = {"signal": each.pk}
        entries = [entry | who for entry in each.told()[0]]
        entries[0] |= {"user": f"publisher-{each.user_id}", "user_id": each.user_id}
        entries[0] |= {"symbol": "BTCUSD", "instrument_id": number}
        found += entries
    found.sort(key=dated_ms)
    return numbered(found)


def numbered(entries: Sequence[Entry]) -> list[Entry]:
    """Each publisher's publications, from 1."""
    count: dict[int, int] = {}
    found = []
    for entry in entries:
        if entry["kind"] == "publish":
            user_id = entry["user_id"]
            count[user_id] = count.get(user_id, 0) + 1
            entry = entry | ({"number": count[user_id]} if "rules" in entry else {})
        found.append(entry)
    return found


def texts_of(entries: Iterable[Entry]) -> list[str]:
    return [canonical(entry | {"position": position}) for position, entry in enumerate(entries, 1)]


def tiles_of(texts: Sequence[str]) -> dict[Place, bytes]:
    tiles: dict[Place, bytes] = {}
    merkle.append(tiles, 0, (leaf_hash(text.encode()) for text in texts))
    return tiles


def signed(texts: Sequence[str], size: int, log: SigningKey) -> Note:
    text = str(Checkpoint(log.name, size, merkle.root(tiles_of(texts[:size]), size)))
    return Note(text, (sign(text, log),))


def bundle_of(world: World, user_id: int, texts: Sequence[str], notes: Sequence[Note]) -> bytes:
    """Of these texts and notes, whether the world is honest or not."""
    tiles, size = tiles_of(texts), len(texts)
    payloads = [json.loads(text) for text in texts]
    own = [each["signal"] for each in payloads if each.get("user_id") == user_id]
    of: dict[str, list[BundleEntry]] = {signal: [] for signal in own}
    for index, (payload, text) in enumerate(zip(payloads, texts, strict=True)):
        if payload["signal"] in of:
            about = index + 1, payload["signal"], text, merkle.inclusion_proof(tiles, index, size)
            of[payload["signal"]].append(BundleEntry(*about, payload["signal"] in world.withheld))
    checkpoints, before = list[BundleCheckpoint](), 0
    for note in sorted(notes, key=lambda each: Checkpoint.read(each.text).size):
        new = Checkpoint.read(note.text).size
        proof = merkle.consistency_proof(tiles, before, new) if before < new <= size else []
        checkpoints.append(BundleCheckpoint(str(note), proof))
        before = new
    now_ms = max(map(dated_ms, payloads))
    waits = {each["signal"]: "without a tick" for each in payloads if is_over(each, payloads, now_ms)}
    keys = [str(world.log.verifier), str(world.witness.verifier)]
    facts = BundleFacts(user_id, now_ms, keys, waits, checkpoints)

    def ticks_of(publish: Payload, since_ms: int, until_ms: int) -> list[Tick] | None:
        market = world.markets.get(publish["signal"])
        ticks = [each for each in market or () if isinstance(each, Tick)]
        found = [each for each in ticks if since_ms <= (each.accepted_ms or each.time_ms) <= until_ms]
        return None if market is None else found

    file = io.BytesIO()
    write_bundle(file, facts, of.values(), ticks_of)
    return file.getvalue()


def is_over(publish: Entry, payloads: Sequence[Entry], now_ms: int) -> bool:
    """Past its expiry, and without an end."""
    if publish["kind"] != "publish" or ms_of(publish["expires_at"]) > now_ms:
        return False
    return all((each["kind"], each["signal"]) != ("close", publish["signal"]) for each in payloads)


class Verdict(NamedTuple):
    code: int
    lines: list[str]

    @property
    def faults(self) -> list[str]:
        return [line for line in self.lines if line.startswith("FAULT")]


def words(folder: Path, bundle: bytes, key: object, texts: Sequence[str]) -> list[str]:
    folder.joinpath("bundle.zip").write_bytes(bundle)
    folder.joinpath("ledger.txt").write_text("".join(f"{text}\n" for text in texts))
    return [
        "bundle.zip",
        *(("--key", str(key)) if key else ()),
        *(("--ledger", "ledger.txt") if texts else ()),
    ]


def verify_alone(
    folder: Path, bundle: bytes, key: object = "", texts: Sequence[str] = (), *more: str
) -> Verdict:
    """As somebody does who has nothing but the file, the key of a witness, and perhaps the whole ledger."""
    folder.joinpath("verify.py").write_bytes(VERIFIER.read_bytes())
    command = [sys.executable, "-I", "-S", "verify.py", *words(folder, bundle, key, texts), *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return Verdict(done.returncode, done.stdout.splitlines())


def verify(folder: Path, bundle: bytes, key: object = "", texts: Sequence[str] = (), *more: str) -> Verdict:
    """The same at a third of the cost, without a process of its own."""
    given = [*words(folder, bundle, key, texts), *more]
    with redirect_stdout(io.StringIO()) as said, chdir(folder):
        code = verifier.main(given)
    return Verdict(code, said.getvalue().splitlines())
