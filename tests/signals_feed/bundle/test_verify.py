"""verify.py, alone in a folder with a bundle: honest ones hold, and what is false in the others is named."""

from __future__ import annotations

import ast
import re
import sys
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import cycle
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from signals_feed.bundle import verify as verifier
from signals_feed.bundle.verify import leaf_hash
from signals_feed.bundle.writing import JUDGES, VERIFIER, digest_of
from signals_feed.record import ms_of
from tests.signals_feed.honest_engine import START_MS, HonestEngine, Plan, iso
from tests.signals_feed.test_judge import story, tick
from transparency import merkle
from transparency.checkpoints import sign
from transparency.keys import KeyType, SigningKey
from transparency.merkle import Place

from .forging import ACTS, COVERS, Cover, forge
from .worlds import Signal, Verdict, World, make_world, verify, verify_alone

MOST_LINES = 500
HOUR_MS = 3_600_000
LATE, WAITS = "witnessed only at", "by the operator's word"
WON, LOST = story(tick(1), tick(60)), story(tick(1), tick(5), tick(-60))
OPEN = story(tick(1), tick(5), tick(3))


def make_signals(*plans: Plan | None) -> list[Signal]:
    """Of one publisher, an hour apart."""
    return [
        Signal(f"s{number}", 7, plan, START_MS + number * HOUR_MS, 1) for number, plan in enumerate(plans)
    ]


def make_told(*plans: Plan | None) -> World:
    return World(make_signals(*plans), Random(1))


def judged(folder: Path, world: World, *more: str, has_ledger: bool = True) -> Verdict:
    texts = world.texts if has_ledger else []
    return verify(folder, world.bundle(world.signals[0].user_id), world.witness.verifier, texts, *more)


def test_verifier_can_be_read_in_one_sitting_and_needs_the_standard_library_alone() -> None:
    source = VERIFIER.read_text()
    assert len(source.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            assert {each.name for each in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert str(node.module).partition(".")[0] in sys.stdlib_module_names


def test_verifier_judges_by_the_modules_of_the_service() -> None:
    assert tuple(path.stem for path in JUDGES) == verifier.MODULES
    assert digest_of(JUDGES) == verifier.JUDGE, (
        "the judge has changed: put its digest into verify.py as JUDGE"
    )


@pytest.mark.parametrize("seed", range(4))
def test_honest_bundle_holds(tmp_path: Path, seed: int) -> None:
    world = make_world(seed)
    own_bundle = world.bundle(world.signals[0].user_id)
    found = verify_alone(tmp_path, own_bundle, world.witness.verifier, world.texts)
    trusts = any(word in line for line in found.lines for word in (LATE, WAITS, verifier.UNFILLED))
    assert (found.code, found.faults) == (2 if trusts else 0, [])
    own = {each.pk for each in world.signals if each.user_id == world.signals[0].user_id}
    assert {line.split()[2].rstrip(":") for line in found.lines if "holds signal" in line} == own
    assert found.lines[-1] == "Whether signals are left out was judged by the ledger."


@pytest.mark.parametrize(
    ("kind", "cover"), [*zip(ACTS, cycle(COVERS)), *(("hide", cover) for cover in COVERS)]
)
def test_forgery_of_what_a_witness_has_seen_is_named(tmp_path: Path, kind: str, cover: Cover) -> None:
    world = make_world(2)
    forged = forge(world, kind, Random(2), cover)
    found = verify(tmp_path, forged.bundle, world.witness.verifier, forged.texts)
    assert found.code == 1, forged.what
    assert found.faults, forged.what


def test_without_the_key_of_a_witness_it_trusts_the_operator(tmp_path: Path) -> None:
    world = make_told(WON)
    for key in ("", world.log.verifier):
        found = verify(tmp_path, world.bundle(7), key, world.texts)
        assert (found.code, found.faults) == (2, [])
        assert "It trusts the operator: no key of a witness was given." in found.lines


@pytest.mark.parametrize(("later", "code"), [(timedelta(minutes=1), 0), (timedelta(days=3), 2)])
def test_a_loser_that_is_said_days_later_to_be_unfilled_is_the_operators_word(
    tmp_path: Path, later: timedelta, code: int
) -> None:
    world = make_told(story((61_000, "wait", ())))
    world.markets.clear()
    for entry in world.entries[2:]:
        for name in {"written", "cancelled_at", "closed_at"} & entry.keys():
            entry[name] = iso(ms_of(entry[name]) + later // timedelta(milliseconds=1))
    world.tell(world.entries, Random(1))
    found = judged(tmp_path, world)
    assert (found.code, found.faults) == (code, [])
    assert any(verifier.UNFILLED in line for line in found.lines) == (code == 2)


def test_key_of_another_log_or_witness_is_not_satisfied(tmp_path: Path) -> None:
    world = make_told(WON)
    for name, type_ in (("example.com/ledger", KeyType.ED25519), ("other.example", KeyType.COSIGNATURE)):
        key = SigningKey.make(name, type_).verifier
        assert verify(tmp_path, world.bundle(7), key, world.texts).code == 1
    assert verify(tmp_path, world.bundle(7), "no key", world.texts).code == 1


def test_without_the_ledger_it_says_that_completeness_was_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, make_told(WON), has_ledger=False)
    assert found.code == 0
    assert found.lines[-1] == "Whether signals are left out was NOT judged: that takes --ledger."


def repacked(bundle: bytes, name: str, act: Callable[[bytes], bytes]) -> bytes:
    made = BytesIO()
    with ZipFile(BytesIO(bundle)) as old, ZipFile(made, "w") as new:
        for each in old.namelist():
            new.writestr(each, act(old.read(each)) if each == name else old.read(each))
    return made.getvalue()


def lines_without(word: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: b"".join(line for line in raw.splitlines(keepends=True) if word not in line)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("entries.jsonl", rb"BTCUSD", b"ETHUSD"),
        ("bundle.json", rb'"user_id": 7', b'"user_id": 8'),
        ("bundle.json", rb'"proof": \[[^]]*\]', b'"proof": []'),
        ("bundle.json", rb"\\u2014 witness.example [^\\]*", b""),
        ("ticks.jsonl", rb'"bid": "1001"', b'"bid": "1000"'),
    ],
)
def test_altered_bundle_is_named_by_itself(tmp_path: Path, name: str, old: bytes, new: bytes) -> None:
    world = make_told(WON, LOST)
    world.markets = {each.pk: each.told()[1] for each in world.signals}
    assert judged(tmp_path, world, has_ledger=False).code == 0
    bundle = repacked(world.bundle(7), name, lambda raw: re.sub(old, new, raw))
    assert verify(tmp_path, bundle, world.witness.verifier).code == 1


def test_checkpoint_of_another_log_is_named(tmp_path: Path) -> None:
    """The operator may have two logs that one witness sees."""
    world = make_told(WON, LOST)
    world.notes[2] = world.cosigned(2)
    assert judged(tmp_path, world).code == 0
    world.log = world.log._replace(name="other.example/ledger")
    world.notes[2] = world.cosigned(2)
    world.log = world.log._replace(name="example.com/ledger")
    assert judged(tmp_path, world).code == 1


def of_two_publishers() -> World:
    one, other = make_signals(WON, LOST)
    return World([one, other._replace(user_id=8)], Random(1))


@pytest.mark.parametrize(("position", "has_ledger"), [(2, False), (6, True)])
def test_wrong_positions_are_named(tmp_path: Path, position: int, has_ledger: bool) -> None:
    """In the bundle, and in the ledger those of others too."""
    world = of_two_publishers()
    world.texts = [text.replace(f'"position":{position},', '"position":9,') for text in world.texts]
    world.notes = {len(world.texts): world.cosigned(len(world.texts))}
    assert judged(tmp_path, world, has_ledger=has_ledger).code == 1


def test_ledger_that_is_not_the_one_that_was_signed_is_named(tmp_path: Path) -> None:
    world = of_two_publishers()
    altered = [text.replace("BTCUSD", "ETHUSD") if '"user_id":8' in text else text for text in world.texts]
    for texts in (altered, world.texts[:-1]):
        found = verify(tmp_path, world.bundle(7), world.witness.verifier, texts)
        assert [line.partition(" of ")[0] for line in found.faults] == ["FAULT ledger"]


def test_ledger_that_goes_back_in_time_is_named(tmp_path: Path) -> None:
    world = make_told(WON, LOST)
    late = [each for each in world.entries if each["signal"] == "s1"]
    world.tell([*late, *(each for each in world.entries if each["signal"] == "s0")], Random(1))
    world.notes = {len(world.texts): world.cosigned(len(world.texts))}
    found = judged(tmp_path, reshaped(world))
    assert any(line.startswith("FAULT ledger") for line in found.faults)


@pytest.mark.parametrize("pk", ["s1", "s2"])
def test_signal_that_is_left_out_is_named(tmp_path: Path, pk: str) -> None:
    world = make_told(WON, LOST, WON)
    bundle = repacked(world.bundle(7), "entries.jsonl", lines_without(b'"signal": "%b"' % pk.encode()))
    found = verify(tmp_path, bundle, world.witness.verifier, world.texts)
    assert found.code == 1
    assert {line.partition(":")[0] for line in found.faults} >= {f"FAULT signal {pk}"}
    # Without the ledger the running numbers tell, but not of the last.
    assert verify(tmp_path, bundle, world.witness.verifier).code == (1 if pk == "s1" else 0)


def test_older_state_of_the_ledger_is_not_fresh(tmp_path: Path) -> None:
    world = make_told(WON)
    assert judged(tmp_path, world, "--fresh").code == 1
    note, now_s = world.notes[len(world.texts)], round(datetime.now(UTC).timestamp())
    line = sign(note.text, world.witness, now_s)
    world.notes[len(world.texts)] = note._replace(signatures=(note.signatures[0], line))
    assert not any("of late" in line for line in judged(tmp_path, world, "--fresh").lines)


@pytest.mark.parametrize(
    ("unseen_ms", "seen_ms", "is_demo", "is_named"),
    [
        (0, 0, False, False),
        (59_000, 0, False, False),
        (61_000, 0, False, True),
        (61_000, 0, True, False),
        (0, -61_000, True, True),
    ],
)
def test_date_that_contradicts_what_the_witness_saw_is_named(
    tmp_path: Path, unseen_ms: int, seen_ms: int, is_demo: bool, is_named: bool
) -> None:
    world = make_told(None, WON)
    before, last, at_ms = 2, len(world.texts), world.signals[1].start_ms
    entries = [{**each, "demo": is_demo} if each["kind"] == "publish" else each for each in world.entries]
    world.tell(
        [
            each
            | (
                {"written": iso(at_ms + HOUR_MS)}
                if is_demo and not seen_ms and each["signal"] == "s1"
                else {}
            )
            for each in entries
        ],
        Random(1),
    )
    world.notes = {
        before: world.cosigned(before, at_ms + unseen_ms),
        last: world.cosigned(last, seen_ms and at_ms + seen_ms),
    }
    found = judged(tmp_path, world)
    assert (found.code == 1) == is_named, found.lines


@pytest.mark.parametrize("plan", [WON, OPEN])
def test_publication_that_was_seen_late_is_the_word_of_the_operator(tmp_path: Path, plan: Plan) -> None:
    """Who dates a winner back, closed or open, leaves out of the bundle what the witness saw without it."""
    world = make_told(plan)
    dated_ms, last = world.signals[0].start_ms, len(world.texts)
    world.notes = {0: world.cosigned(0, dated_ms + HOUR_MS), last: world.cosigned(last, dated_ms + HOUR_MS)}
    assert judged(tmp_path, world).code == 1
    del world.notes[0]
    found = judged(tmp_path, world)
    assert found.code == 2
    assert any(LATE in line for line in found.lines)


def test_demo_is_told_from_the_others(tmp_path: Path) -> None:
    found = judged(tmp_path, reshaped(make_told(WON), demo=True))
    assert found.code == 2
    assert any("of the demo" in line for line in found.lines if line.startswith("holds signal"))


def reshaped(world: World, **fields: object) -> World:
    """Its publications say something else of these."""
    told = [each | (fields if each["kind"] == "publish" else {}) for each in world.entries]
    world.tell(told, Random(1))
    return world


def test_signal_past_its_expiry_needs_a_reason_to_be_open(tmp_path: Path) -> None:
    world = make_told(OPEN._replace(expires_ms=4_000), WON)
    assert judged(tmp_path, world).code == 2
    untold = repacked(world.bundle(7), "bundle.json", lambda raw: raw.replace(b'"s0": ', b'"s9": '))
    found = verify(tmp_path, untold, world.witness.verifier, world.texts)
    assert [line.partition(":")[0] for line in found.faults] == ["FAULT signal s0"]
    # The other signal of the instrument had a tick in the meantime.
    found = judged(tmp_path, reshaped(world, instrument_id=0))
    assert [line.partition(":")[0] for line in found.faults] == ["FAULT signal s0"]
    # The tick by which it is filled does not end it.
    filled_later = story((50_000, "restart", ()), tick(1, after_ms=30_000), expires_ms=4_000)
    assert judged(tmp_path, make_told(filled_later, WON)).code == 2


def test_publication_by_the_rules_of_before_after_the_new_ones_is_named(tmp_path: Path) -> None:
    world = make_told(None, WON, None)
    numbered = [each | ({"number": 3} if each["signal"] == "s2" else {}) for each in world.entries]
    for entries in (world.entries, numbered):
        world.tell(entries, Random(1))
        found = judged(tmp_path, world)
        assert [line.partition(":")[0] for line in found.faults] == ["FAULT signal s2"]


def test_withheld_prices_are_hashes_in_their_place(tmp_path: Path) -> None:
    world = make_told(WON, LOST)
    world.withheld = {"s0"}
    with ZipFile(BytesIO(world.bundle(7))) as packed:
        lines = packed.read("entries.jsonl") + packed.read("ticks.jsonl")
    assert b"s0" in lines
    assert lines.count(b"stop_loss") == 2
    hidden = [f"leaf {b64encode(leaf_hash(text.encode())).decode()}" for text in world.texts]
    texts = [leaf if '"s0"' in text else text for text, leaf in zip(world.texts, hidden, strict=True)]
    found = verify(tmp_path, world.bundle(7), world.witness.verifier, texts)
    assert (found.code, found.faults) == (2, [])
    assert "It trusts the operator: what is withheld was not judged." in found.lines


@pytest.mark.parametrize(
    ("plan", "said", "code"),
    [(OPEN, {"demo": True}, 2), (OPEN, {"demo": False}, 1), (None, {"demo": False}, 1), (None, {}, 2)],
)
def test_only_signals_of_the_demo_are_removed(
    tmp_path: Path, plan: Plan | None, said: dict[str, object], code: int
) -> None:
    world = reshaped(make_told(plan), **said)
    world.tell(
        [*world.entries, {"kind": "remove", "signal": "s0", "written": iso(START_MS + HOUR_MS)}], Random(1)
    )
    assert judged(tmp_path, world).code == code


def test_archived_ticks_name_what_the_evidence_alone_does_not(tmp_path: Path) -> None:
    world = make_told(WON)
    world.markets = {}
    assert judged(tmp_path, world).code == 0
    # The stop was reached before the target, and the ledger has told of the target from the first.
    world.markets = {"s0": HonestEngine(story(tick(1), tick(-60), tick(119)), START_MS).market}
    found = judged(tmp_path, world)
    assert [line.partition(":")[0] for line in found.faults] == ["FAULT signal s0"]


def test_false_fill_of_an_open_signal_is_named(tmp_path: Path) -> None:
    world = make_told(OPEN)
    world.markets = {}
    forged = [each | ({"fill_price": "1001"} if each["kind"] == "fill" else {}) for each in world.entries]
    world.tell(forged, Random(1))
    found = judged(tmp_path, world)
    assert [line.partition(":")[0] for line in found.faults] == ["FAULT signal s0"]


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("1m", "{us},1000,{high},{low},1000,5,0"),
        ("1s", "{ms},1000,{high},{low},1000,5,0"),
        ("aggTrades", "1,{price},5,1,1,{ms},true,true"),
    ],
)
@pytest.mark.parametrize(("low", "high", "code"), [(975, 1040, 0), (900, 950, 1), (1050, 1100, 1)])
def test_prices_are_compared_with_those_of_binance(
    tmp_path: Path, kind: str, row: str, low: int, high: int, code: int
) -> None:
    world = make_told(None)
    day, rows = f"{datetime.fromtimestamp(START_MS / 1_000, UTC):%Y-%m-%d}", ["open_time" + "," * 7]
    for at_ms in range(START_MS - 120_000, START_MS + 60_000, 1_000):
        known = {"ms": at_ms, "us": at_ms * 1_000, "low": low, "high": high}
        rows += [row.format(price=price, **known) for price in (low, high)]
    with ZipFile(tmp_path / f"BTCUSDT-{kind}-{day}.zip", "w") as packed:
        packed.writestr(f"BTCUSDT-{kind}-{day}.csv", "\n".join(rows))
    found = judged(tmp_path, world, "--binance", ".")
    assert found.code == code, found.lines
    assert "2 ticks were compared with those of Binance." in found.lines
    other = judged(tmp_path, make_told(WON), "--binance", ".")
    assert (other.code, "0 ticks were compared with those of Binance." in other.lines) == (0, True)


def test_day_without_a_file_is_not_compared(tmp_path: Path) -> None:
    found = judged(tmp_path, make_told(None), "--binance", ".")
    assert found.code == 0
    assert any(line.startswith("0 ticks were compared") and "BTCUSDT on 2026" in line for line in found.lines)


def test_bundle_draws_no_lines_of_its_own(tmp_path: Path) -> None:
    honest = judged(tmp_path, make_told(WON))
    found = judged(tmp_path, reshaped(make_told(WON), symbol="BTC\n\x1b[31mFAULT"))
    assert len(found.lines) == len(honest.lines)
    assert not found.faults


def test_judge_of_another_version_is_not_executed(tmp_path: Path) -> None:
    world = make_told(WON)
    bundle = repacked(world.bundle(7), "judge/judge.py", lambda raw: raw + b"\nraise SystemExit(0)\n")
    assert verify(tmp_path, bundle, world.witness.verifier).code == 1


@pytest.mark.parametrize("raw", [b"", b"PK", b"{}"])
def test_what_is_no_bundle_is_a_fault(tmp_path: Path, raw: bytes) -> None:
    assert verify(tmp_path, raw).code == 1
    bundle = repacked(make_told(WON).bundle(7), "bundle.json", lambda _: raw)
    assert verify(tmp_path, bundle).code == 1


def test_signatures_are_verified_as_everywhere() -> None:
    rng = Random(1)
    for kind in KeyType:
        key = SigningKey("a", kind, rng.randbytes(32))
        public, message = key.verifier.public, rng.randbytes(40)
        signature = Ed25519PrivateKey.from_private_bytes(key.seed).sign(message)
        assert verifier.is_signed(public, message, signature)
        beyond = (int.from_bytes(signature[32:], "little") + verifier.ORDER).to_bytes(32, "little")
        assert not verifier.is_signed(public, message, signature[:32] + beyond)
        for place in (0, 31, 32, 63):
            wrong = bytes(each ^ (number == place) for number, each in enumerate(signature))
            assert not verifier.is_signed(public, message, wrong)
            assert not verifier.is_signed(public, message + b"x", signature)
        assert verifier.Key.read(str(key.verifier)).id == key.verifier.id
    assert not verifier.is_signed(b"\2" + bytes(31), b"", bytes(64))


def test_trees_are_those_of_the_log() -> None:
    tree, leaves = verifier.Tree(), [leaf_hash(b"%d" % number) for number in range(20)]
    tiles: dict[Place, bytes] = {}
    merkle.append(tiles, 0, leaves)
    for size, leaf in enumerate(leaves, 1):
        tree.add(leaf)
        root = merkle.root(tiles, size)
        assert tree.root() == root
        for index in range(size):
            proof = merkle.inclusion_proof(tiles, index, size)
            for given in (proof, proof[:-1], [*proof, root], [*proof[1:], root]):
                is_proved = verifier.roots_by(given, index, size - 1, leaves[index])[1] == root
                assert is_proved == (given == proof)
            old, proof = merkle.root(tiles, index + 1), merkle.consistency_proof(tiles, index + 1, size)
            for given in (proof, proof[:-1], [*proof, root], [*proof[1:], root]):
                arguments = index + 1, old, size, root, given
                assert verifier.is_extended(*arguments) == merkle.proves_consistency(*arguments)
