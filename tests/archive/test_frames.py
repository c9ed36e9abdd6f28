from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from archive.journal import MOST_BYTES, Frame, HeardRecords, Opened, framed, whole_frames
from market.prices.candles import PriceBar
from market.prices.records import EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

prices = st.floats(0.0001, 1e6)
texts = st.text("ABC", min_size=1, max_size=4)
numbers = st.integers(0, 2**53)
ticks = st.builds(
    TickAccepted,
    texts,
    prices,
    prices,
    numbers,
    prices,
    numbers,
    source=texts,
    side=st.sampled_from((-1, 0, 1)),
)
bars = st.builds(PriceBar, numbers, *[prices] * 7, source=texts)
records = st.one_of(
    ticks,
    st.builds(EmptyMinute, texts, numbers, texts),
    st.builds(HistoryMinute, texts, bars, st.sampled_from(("bid", "trades"))),
    st.builds(SeriesBegan, texts, st.booleans(), numbers, numbers),
)
frames: st.SearchStrategy[Frame] = st.one_of(
    st.builds(HeardRecords, texts, st.lists(records, max_size=4)),
    st.builds(
        Opened,
        st.just(1),
        numbers,
        st.sampled_from(("bid", "mid")),
        st.dictionaries(texts, st.tuples(numbers, numbers)),
    ),
)


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@given(st.lists(frames, max_size=5), st.integers(1, 200))
def test_what_was_written_is_read_however_it_comes(written: list[Frame], size: int) -> None:
    data = b"".join(map(framed, written))
    assert list(whole_frames(blocks(data, size))) == written


@given(st.lists(frames, min_size=1, max_size=5), st.data())
def test_a_torn_tail_costs_only_what_was_torn(written: list[Frame], data: st.DataObject) -> None:
    parts = list(map(framed, written))
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole) - 1))
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    kept = sum(end <= cut for end in ends)
    # After a power cut the length may have grown, and what is in it has not.
    tail = data.draw(st.sampled_from((b"", b"\0" * 40, b"\xff" * 40)))
    read = list(whole_frames(blocks(whole[:cut] + tail, 64)))
    # A frame that lost nothing but zeros at its end may get them back.
    is_restored = (whole[:cut] + tail).startswith(whole[: [*ends, 0][kept]])
    assert read == written[: kept + is_restored]


@given(st.lists(frames, min_size=1, max_size=4), st.data(), st.integers(1, 200))
def test_a_flipped_bit_costs_one_frame(written: list[Frame], data: st.DataObject, size: int) -> None:
    parts = list(map(framed, written))
    ends = list(accumulate(map(len, parts)))
    place = data.draw(st.integers(0, ends[-1] - 1))
    whole = bytearray(b"".join(parts))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    damages: list[tuple[int, int]] = []
    read = list(whole_frames(blocks(bytes(whole), size), lambda *damage: damages.append(damage)))
    hit = bisect_right(ends, place)
    assert read == written[:hit] + written[hit + 1 :]
    # At the end it may as well have been torn.
    is_last = hit == len(parts) - 1
    assert damages == ([] if is_last else [(ends[hit] - len(parts[hit]), len(parts[hit]))])


def test_a_length_that_no_frame_has_is_damage_and_not_waited_for() -> None:
    data, after = (MOST_BYTES + 1).to_bytes(4, "big") + b"\0" * 100, HeardRecords("e", [])
    assert list(whole_frames([data, framed(after)])) == [after]
