"""Every stream that has numbers takes part in all that begins, changes or ends the numbering."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.clock import now_ms
from instruments.catalogue import catalogue
from market.prices.records import SeriesBegan, Tick
from market.store.checkpoints import Checkpoint
from market.streams import market_streams
from market.streams.protocol.messages import KINDS
from market.streams.stream import NumberedStream
from tests.factories import make_instrument

from .returning import goes_on

pytestmark = pytest.mark.django_db
EPOCH = "of this test"
SEQ = 7


@pytest.fixture(autouse=True)
def numbered() -> Iterator[None]:
    make_instrument("EURUSD")
    catalogue.load_now()
    quoted = Tick("EURUSD", 1.1, 1.2, now_ms())
    checkpoint = Checkpoint(quoted, None, SEQ, SEQ, candle_seqs={"1m": SEQ})
    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint})
    yield
    market_streams.stop()


def test_streams_are_all_kinds_with_numbers() -> None:
    assert [stream.kind for stream in market_streams.STREAMS] == [kind for kind in KINDS if kind.is_numbered]


@pytest.mark.parametrize("stream", market_streams.STREAMS, ids=lambda stream: stream.kind.name)
def test_every_stream_begins_with_the_epoch_and_the_numbers(stream: NumberedStream) -> None:
    assert stream.recent.epoch == EPOCH
    key = "EURUSD/1m" if stream.kind.has_timeframes else "EURUSD"
    assert stream.recent.positions([key]) == {key: SEQ}
    assert goes_on(stream, EPOCH, SEQ)


@pytest.mark.parametrize("stream", market_streams.STREAMS, ids=lambda stream: stream.kind.name)
def test_nobody_goes_on_into_a_new_series_on_any_stream(stream: NumberedStream) -> None:
    market_streams.publish([SeriesBegan("EURUSD", False, now_ms(), SEQ, 1.1, 1.2)])

    assert not goes_on(stream, EPOCH, SEQ)


@pytest.mark.parametrize("stream", market_streams.STREAMS, ids=lambda stream: stream.kind.name)
def test_no_stream_keeps_its_epoch_when_the_process_ends(stream: NumberedStream) -> None:
    market_streams.stop()

    assert stream.recent.epoch == ""
