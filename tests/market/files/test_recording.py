from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from market.engine.files.recording import RECORDING, encode
from market.prices.records import Tick

from .reading import read

prices = st.floats(0.0001, 1e9)
ticks = st.builds(
    Tick,
    symbol=st.just("EURUSD"),
    bid=prices,
    ask=prices,
    time_ms=st.integers(0, 2**53),
    volume=prices,
    side=st.sampled_from([-1, 0, 1]),
    price=st.none() | prices,
    source_seq=st.none() | st.integers(0, 2**53),
)
TICK = Tick("EURUSD", 1.1, 1.2, 1795003200000)


@given(st.lists(ticks, max_size=8))
def test_what_was_recorded_is_read(made: list[Tick]) -> None:
    assert read(RECORDING, encode(made)).ticks == made


def test_other_symbols_are_left_out_and_the_lines_keep_their_numbers() -> None:
    found = read(RECORDING, encode([TICK, Tick("GBPUSD", 1.3, 1.4, 1795003200000), TICK]))

    assert (found.ticks, found.lines, found.malformed) == ([TICK, TICK], [1, 3], [])


def test_line_that_was_cut_short_is_named() -> None:
    found = read(RECORDING, encode([TICK, TICK]) + b"\n" + encode([TICK])[:-9])

    assert (found.lines, found.malformed) == ([1, 2], [4])


def test_line_without_a_price_is_named() -> None:
    assert read(RECORDING, b'{"symbol":"EURUSD","bid":null,"ask":1.2,"time_ms":1}\n').malformed == [1]
