"""What somebody does who has the installation with all of its keys, but not the witness's: rewrites a fact
that the witness has seen, rebuilds the ledger, its tree and its checkpoints, and hands out the bundle."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from tests.signals_feed.honest_engine import Entry
from transparency.checkpoints import Checkpoint, Note, sign
from transparency.keys import KeyType, SigningKey

from .worlds import Signal, World, bundle_of, make_plan, numbered, signed, texts_of, written


class Forgery(NamedTuple):
    what: str
    bundle: bytes
    texts: list[str]
    """The ledger that is handed out with it."""


Act = Callable[[World, Random], tuple[list[Entry], int]]
"""The entries as they are after it, and a publisher whom it concerns."""


def altered(world: World, rng: Random) -> tuple[list[Entry], int]:
    """A field, or all that follows from another course of the market."""
    entries, signal = deepcopy(world.entries), rng.choice(world.signals)
    if signal.plan is not None and rng.random() < 0.5:
        other = signal._replace(plan=make_plan(rng)._replace(is_buy=not signal.plan.is_buy))
        return written([other if each == signal else each for each in world.signals]), signal.user_id
    entry = rng.choice([each for each in entries if each["signal"] == signal.pk])
    inside = entry["evidence"] if entry.get("evidence") and rng.random() < 0.5 else entry
    name = rng.choice([name for name in inside if name not in ("kind", "signal", "evidence", "user_id")])
    inside[name] = another(inside[name])
    return entries, signal.user_id


def another(value: Any) -> Any:
    if isinstance(value, str):
        return f"{value[:-2]}{(int(value[-2]) + 1) % 10}Z" if value[-1:] == "Z" else f"{value}1"
    return "1" if value is None else not value if isinstance(value, bool) else value + 1


def deleted(world: World, rng: Random) -> tuple[list[Entry], int]:
    lost = rng.choice(world.entries)
    user_id = next(each.user_id for each in world.signals if each.pk == lost["signal"])
    return [each for each in world.entries if each != lost], user_id


def inserted(world: World, rng: Random) -> tuple[list[Entry], int]:
    """A signal that was never published."""
    like = rng.choice(world.signals)
    pk, start_ms = str(UUID(bytes=rng.randbytes(16))), like.start_ms + rng.randrange(-9_000, 9_000)
    made = Signal(pk, like.user_id, like.plan and make_plan(rng), start_ms, rng.randrange(2**32))
    signals = [*world.signals]
    signals.insert(signals.index(like), made)
    return written(signals), like.user_id


def reordered(world: World, rng: Random) -> tuple[list[Entry], int]:
    place = rng.randrange(len(world.entries) - 1)
    one, other = world.entries[place : place + 2]
    entries = [*world.entries[:place], other, one, *world.entries[place + 2 :]]
    return entries, next(each.user_id for each in world.signals if each.pk == one["signal"])


def redated(world: World, rng: Random) -> tuple[list[Entry], int]:
    signal = rng.choice(world.signals)
    by_ms = rng.choice([-3_600_000, -60_000, -1, 1, 60_000])
    other = signal._replace(start_ms=signal.start_ms + by_ms)
    return written([other if each == signal else each for each in world.signals]), signal.user_id


def given_to_another(world: World, rng: Random) -> tuple[list[Entry], int]:
    signal = rng.choice(world.signals)
    other = signal._replace(user_id=signal.user_id % 3 + 1)
    user_id = rng.choice([each.user_id for each in world.signals if each != signal] or [other.user_id])
    return written([other if each == signal else each for each in world.signals]), user_id


def hidden(world: World, rng: Random) -> tuple[list[Entry], int]:
    """A signal with all its entries, and nothing shows in the running numbers."""
    lost = rng.choice(world.signals)
    left = [each for each in world.signals if each != lost]
    kept = [each for each in world.entries if each["signal"] != lost.pk]
    return numbered(kept), rng.choice([each.user_id for each in left])


def of_another_source(world: World, rng: Random) -> tuple[list[Entry], int]:
    entries, signal = deepcopy(world.entries), rng.choice(world.signals)
    for each in entries:
        if each["signal"] == signal.pk and each.get("evidence"):
            each["evidence"] |= {"feed": "binance", "simulated": False}
    return entries, signal.user_id


ACTS: dict[str, Act] = {
    "alter": altered,
    "delete": deleted,
    "insert": inserted,
    "reorder": reordered,
    "redate": redated,
    "swap publisher": given_to_another,
    "hide": hidden,
    "false source": of_another_source,
}


def notes_without(world: World, texts: list[str], same: int) -> list[Note]:
    """Signed again, and by no witness."""
    return [signed(texts, size, world.log) for size in {min(size, len(texts)) for size in world.notes}]


def notes_of_before(world: World, texts: list[str], same: int) -> list[Note]:
    """What the witness has signed of the entries before the first that was forged."""
    kept = [note for size, note in world.notes.items() if size <= same]
    return [*kept, signed(texts, len(texts), world.log)]


def notes_that_are_true(world: World, texts: list[str], same: int) -> list[Note]:
    """All that the witness has signed, and one of what is there now."""
    kept = [note for size, note in world.notes.items() if size <= len(texts)]
    return [*kept, signed(texts, len(texts), world.log)]


def notes_alone(world: World, texts: list[str], same: int) -> list[Note]:
    """Nothing but what the witness has signed."""
    return [*world.notes.values()]


def notes_with_moved_lines(world: World, texts: list[str], same: int) -> list[Note]:
    """The cosignatures under other checkpoints than those that were signed."""
    moved = []
    for size, note in world.notes.items():
        other = signed(texts, min(size, len(texts)), world.log)
        moved.append(other._replace(signatures=(*other.signatures, note.signatures[-1])))
    return moved


def notes_by_a_false_witness(world: World, texts: list[str], same: int) -> list[Note]:
    key = SigningKey(world.witness.name, KeyType.COSIGNATURE, b"forged" + bytes(26))
    now_s = 1_800_000_000
    notes = notes_without(world, texts, same)
    return [each._replace(signatures=(*each.signatures, sign(each.text, key, now_s))) for each in notes]


Cover = Callable[[World, list[str], int], list[Note]]
COVERS: tuple[Cover, ...] = (
    *(notes_without, notes_of_before, notes_that_are_true, notes_alone),
    *(notes_with_moved_lines, notes_by_a_false_witness),
)


def forge(world: World, kind: str, rng: Random, under: Cover | None = None) -> Forgery:
    """By one of the ways, under one of the covers."""
    texts = world.texts
    # What the witness has seen to be the whole ledger was the truth then.
    while texts == world.texts[: len(texts)] and len(texts) in world.notes:
        entries, user_id = ACTS[kind](world, rng)
        texts = texts_of(entries)
    changed = (
        place for place, pair in enumerate(zip(texts, world.texts, strict=False)) if pair[0] != pair[1]
    )
    same = next(changed, min(len(texts), len(world.texts)))
    cover = under or rng.choice(COVERS)
    notes = {Checkpoint.read(each.text): each for each in cover(world, texts, same)}
    bundle = bundle_of(world, user_id, texts, [*notes.values()])
    # The forged ledger goes with it, or the true one.
    ledger = texts if under or rng.random() < 0.8 else world.texts
    return Forgery(f"{kind}, {cover.__name__}", bundle, ledger)
