"""No key, password or private key was ever committed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts.key_text import derive_key, generate_key, is_well_formed
from tests.reliability.fixtures import Tell

ROOT = Path(__file__).resolve().parents[3]
OURS = re.compile(rb"tw_[a-z]{1,12}_[0-9A-Za-z]{42}")
OTHERS = re.compile(
    rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\r\n]+[A-Za-z0-9+/=]{40}"
    rb"|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36}\b|\bxox[abprs]-[0-9A-Za-z-]{20,60}|\bsk-[0-9A-Za-z]{40,60}\b"
)

# Follows from the word "secret", and stands in a test so that derived keys stay the same.
DERIVED = derive_key("secret", "demo")


def secrets_in(text: bytes) -> list[str]:
    """What looks like a key of ours counts only with its checksum: documents may show one that is none."""
    own = [found.decode() for found in OURS.findall(text) if found.decode() != DERIVED]
    return [key for key in own if is_well_formed(key, key[: key.index("_", 3) + 1])] + [
        found.decode() for found in OTHERS.findall(text)
    ]


def committed() -> Iterator[tuple[str, bytes]]:
    """Every file and message of every commit, once."""
    git = ["git", "-C", str(ROOT)]
    listed = subprocess.run([*git, "rev-list", "--objects", "HEAD"], capture_output=True, check=True).stdout
    wanted = b"\n".join(line.split(b" ")[0] for line in listed.splitlines()) + b"\n"
    batch = subprocess.run([*git, "cat-file", "--batch"], input=wanted, capture_output=True, check=True)
    yield from objects_in(batch.stdout)


def objects_in(batch: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(batch):
        name, kind, size = batch[at : batch.index(b"\n", at)].split()
        begin = batch.index(b"\n", at) + 1
        if kind != b"tree":
            yield name.decode()[:12], batch[begin : begin + int(size)]
        at = begin + int(size) + 1


def in_the_tree() -> Iterator[tuple[str, bytes]]:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0")[:-1]:
        path = ROOT / name
        if path.is_file():
            yield name, path.read_bytes()


@pytest.mark.row("78", "no secret found")
def test_no_secret_was_ever_committed(tell: Tell) -> None:
    seen = 0
    hits: list[str] = []
    for place in (in_the_tree(), committed()):
        for name, text in place:
            seen += 1
            hits += [f"{name}: {found[:12]}…" for found in secrets_in(text)]

    tell(f"{len(hits)} occurrences in {seen:,} files and commits")
    assert seen > 1_000
    assert hits == []


@pytest.mark.row("78", "planted secrets are seen")
def test_control_planted_secrets_are_found() -> None:
    key, ingest = generate_key(), generate_key("tw_ingest_")
    private = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "A" * 64
    planted = [key, ingest, "AKIA" + "A" * 16, "ghp_" + "a" * 36]
    assert secrets_in(" ".join(planted).encode()) == planted
    assert secrets_in(private.encode()) != []
    # A letter changed, so that the checksum is wrong: an example, and no key.
    assert secrets_in((key[:-1] + ("A" if key[-1] != "A" else "B")).encode()) == []
