"""The tree against the definitions of RFC 6962."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transparency import merkle
from transparency.merkle import leaf_hash

from . import naive

# Past the first tile, and past a second level of them.
SMALL, LARGE = 700, 66_000
LARGE_TREE = naive.tree_of(LARGE)
sizes = st.integers(0, SMALL)


@given(sizes, sizes)
def test_root_does_not_depend_on_how_a_tree_grew(first: int, more: int) -> None:
    entries = naive.entries_of(first + more)
    tiles = naive.tree_of(first)
    before = dict(tiles)
    changed = merkle.append(tiles, first, map(leaf_hash, entries[first:]))
    assert merkle.root(tiles, first + more) == naive.head(entries)
    assert merkle.root(tiles, first) == naive.head(entries[:first])
    assert tiles == naive.tree_of(first + more) == before | changed


@given(sizes)
def test_frontier_has_the_same_root(size: int) -> None:
    frontier = merkle.Frontier()
    for entry in naive.entries_of(size):
        frontier.add(leaf_hash(entry))
    assert frontier.root() == merkle.root(naive.tree_of(size), size)


@given(st.data())
def test_proofs_are_those_of_the_definitions_and_hold(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, SMALL))
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    entries, tiles = naive.entries_of(size), naive.tree_of(size)
    root, old_root = naive.head(entries), naive.head(entries[:old])
    consistency = merkle.consistency_proof(tiles, old, size)
    assert merkle.inclusion_proof(tiles, index, size) == naive.path(index, entries)
    assert consistency == naive.proof(old, entries)
    assert merkle.proves_consistency(old, old_root, size, root, consistency)


@given(st.data())
def test_altered_proof_does_not_hold(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 200))
    old, tiles = data.draw(st.integers(1, size - 1)), naive.tree_of(size)
    root, old_root = merkle.root(tiles, size), merkle.root(tiles, old)
    for altered in altered_lists(data, merkle.consistency_proof(tiles, old, size)):
        assert not merkle.proves_consistency(old, old_root, size, root, altered)
    consistency = merkle.consistency_proof(tiles, old, size)
    assert not merkle.proves_consistency(old, bytes(32), size, root, consistency)
    assert not merkle.proves_consistency(old, old_root, size, bytes(32), consistency)


def altered_lists(data: st.DataObject, proof: list[bytes]) -> list[list[bytes]]:
    """One too many; one too few, and one exchanged."""
    too_long = [*proof, bytes(32)]
    if not proof:
        return [too_long]
    place = data.draw(st.integers(0, len(proof) - 1))
    return [too_long, proof[:place] + proof[place + 1 :], [*proof[:place], bytes(32), *proof[place + 1 :]]]


def test_empty_tree_is_extended_by_any_and_by_nothing_else() -> None:
    tiles = naive.tree_of(3)
    root = merkle.root(tiles, 3)
    assert merkle.consistency_proof(tiles, 0, 3) == []
    assert merkle.proves_consistency(0, merkle.EMPTY_ROOT, 3, root, [])
    assert not merkle.proves_consistency(0, merkle.EMPTY_ROOT, 3, root, [root])
    assert not merkle.proves_consistency(0, root, 3, root, [])
    assert not merkle.proves_consistency(3, root, 0, merkle.EMPTY_ROOT, [])
    assert merkle.proves_consistency(3, root, 3, root, [])
    assert not merkle.proves_consistency(3, root, 3, bytes(32), [])


def test_proof_has_the_length_that_the_size_demands() -> None:
    root = merkle.root(naive.tree_of(4), 4)
    forged = merkle.node_hash(root, bytes(32))
    assert merkle.proves_consistency(4, root, 5, forged, [bytes(32)])
    assert not merkle.proves_consistency(4, root, 9, forged, [bytes(32)])


@given(st.data())
def test_proofs_read_only_the_tiles_that_are_named(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, LARGE))
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    named = merkle.tiles_for(size, index, old - 1)
    tiles = {place: LARGE_TREE[place] for place in named & LARGE_TREE.keys()}
    root, old_root = merkle.root(tiles, size), merkle.root(LARGE_TREE, old)
    leaf = leaf_hash(f"entry {index}".encode())
    assert len(named) <= 9
    whole = merkle.inclusion_proof(LARGE_TREE, index, size)
    assert merkle.inclusion_proof(tiles, index, size) == whole
    proof = merkle.consistency_proof(tiles, old, size)
    assert merkle.proves_consistency(old, old_root, size, root, proof)
    grown = {place: LARGE_TREE[place] for place in merkle.tiles_for(LARGE)}
    merkle.append(grown, LARGE, [leaf] * 600)
