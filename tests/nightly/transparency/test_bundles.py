"""Bundles by the thousand, forged and honest, and one of a ledger with a million entries."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random

from signals_feed.bundle.writing import BundleCheckpoint, BundleEntry, BundleFacts, write_bundle
from signals_feed.ledger.ledger import canonical
from tests.nightly.figures import note
from tests.signals_feed.bundle.forging import ACTS, forge
from tests.signals_feed.bundle.worlds import World, dated_ms, make_world, verify_alone
from tests.signals_feed.honest_engine import START_MS, HonestEngine
from tests.signals_feed.test_judge import story, tick
from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, sign
from transparency.merkle import Place, leaf_hash

TIMES, ENTRIES, MOST_S = 1_000, 1_000_000, 60
DAY_MS = 86_400_000


def test_a_thousand_forgeries_are_named(tmp_path: Path) -> None:
    unnamed = []
    for seed in range(TIMES):
        world = make_world(seed)
        forged = forge(world, [*ACTS][seed % len(ACTS)], Random(seed))
        found = verify_alone(tmp_path, forged.bundle, world.witness.verifier, forged.texts)
        if found.code != 1 or not found.faults:
            unnamed.append(f"{seed}: {forged.what}")
    note("Forgeries named", f"{TIMES:,} of {TIMES:,}", f"{TIMES - len(unnamed):,}", held=not unnamed)
    assert not unnamed


def test_a_thousand_honest_bundles_hold(tmp_path: Path) -> None:
    alarms = {}
    for seed in range(TIMES):
        world = make_world(seed)
        user_id = world.signals[seed % len(world.signals)].user_id
        found = verify_alone(tmp_path, world.bundle(user_id), world.witness.verifier, world.texts)
        if found.code == 1:
            alarms[seed] = found.lines
    note("Alarms over honest bundles", f"0 of {TIMES:,}", f"{len(alarms):,}", held=not alarms)
    assert not alarms


def long_ledger(world: World) -> Iterator[str]:
    """Others', all told at one time, and at its end that of the world."""
    told = HonestEngine(story(tick(1), tick(5), tick(60)), START_MS - DAY_MS).entries
    told[0] |= {"user": "publisher-99", "user_id": 99, "symbol": "ETHUSD", "instrument_id": 99}
    alike = {"written": told[-1]["written"], "signal": "SIGNAL", "position": "POSITION"}
    forms = [canonical(each | alike).replace('"POSITION"', "POSITION") for each in told]
    others = ENTRIES - len(world.entries)
    for number in range(others):
        signal = f"00000000-0000-0000-0000-{number // len(forms):012}"
        form = forms[number % len(forms)]
        yield form.replace("SIGNAL", signal).replace("POSITION", str(number + 1))
    for position, entry in enumerate(world.entries, others + 1):
        yield canonical(entry | {"position": position})


def test_bundle_of_a_ledger_with_a_million_entries(tmp_path: Path) -> None:
    world = World([each for each in make_world(1, 150).signals if each.plan], Random(1))
    leaves: list[bytes] = []
    with tmp_path.joinpath("all.txt").open("w") as file:
        for text in long_ledger(world):
            leaves.append(leaf_hash(text.encode()))
            file.write(f"{text}\n")
    tiles: dict[Place, bytes] = {}
    merkle.append(tiles, 0, leaves)
    text = str(Checkpoint(world.log.name, ENTRIES, merkle.root(tiles, ENTRIES)))
    seen_s = max(map(dated_ms, world.entries)) // 1_000
    signed = Note(text, (sign(text, world.log), sign(text, world.witness, seen_s)))
    of: dict[str, list[BundleEntry]] = {each.pk: [] for each in world.signals if each.user_id == 1}
    for position, entry in enumerate(world.entries, ENTRIES - len(world.entries) + 1):
        if entry["signal"] in of:
            proof = merkle.inclusion_proof(tiles, position - 1, ENTRIES)
            payload = canonical(entry | {"position": position})
            of[entry["signal"]].append(BundleEntry(position, entry["signal"], payload, proof))
    waits = dict.fromkeys(of, "without a tick")
    keys = [str(world.log.verifier)]
    facts = BundleFacts(1, 1_000 * seen_s, keys, waits, [BundleCheckpoint(str(signed), [])])
    with tmp_path.joinpath("made.zip").open("wb") as packed:
        write_bundle(packed, facts, of.values(), lambda *_: None)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    bundle = tmp_path.joinpath("made.zip").read_bytes()
    found = verify_alone(tmp_path, bundle, world.witness.verifier, (), "--ledger", "all.txt")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (found.code, found.faults) == (2, []), found.lines
    assert len(found.lines) > len(of)
    took_s = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    figure = f"verify.py over {ENTRIES:,} entries, processor time"
    note(figure, f"at most {MOST_S} s", f"{took_s:.1f} s", held=took_s <= MOST_S)
    assert took_s <= MOST_S
