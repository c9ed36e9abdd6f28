"""What is written every second of each instrument that moved, past the ORM."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from core.times import MINUTE_MS, moment
from market.models import FormingMinute, LastQuote
from market.prices.candles import PriceBar
from market.prices.records import JournalPosition, Tick
from market.store import checkpoints
from market.store.checkpoints import Checkpoint
from market.store.lease import Lease
from tests.factories import NOON, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db, pytest.mark.services]
FLOW_STATE = {"day": 20_775, "units": -1.5e-7, "name": 'a "b", {c}\\', "none": None, "list": [1, 2.5]}


@pytest.fixture
def lease() -> Lease:
    taken = Lease()
    taken.take()
    return taken


def write(lease: Lease, written: dict[int, Checkpoint]) -> None:
    checkpoints.write([], written, lease, JournalPosition("e", 1))


def make_checkpoint(
    symbol: str, price: float = 1.0841, at_ms: int = NOON_MS + 250, seq: int = 7
) -> Checkpoint:
    tick = Tick(symbol, price, price + 0.00014, at_ms, 3.0)
    minute = PriceBar(NOON_MS, price, price + 1e-8, price - 1e-8, price, 1 / 3, price, price, "kraken+demo")
    seqs = {"kraken trades": 2**53, 'a"b': 1}
    return Checkpoint(tick, minute, seq, 5, FLOW_STATE, seqs, simulated=True, source="demo")


def test_what_is_written_is_read_again(lease: Lease) -> None:
    instrument = make_instrument()
    written = make_checkpoint(instrument.symbol)

    write(lease, {instrument.pk: written})

    found = checkpoints.read_checkpoints()[instrument.pk]
    assert written.minute is not None
    assert found.minute == PriceBar(
        NOON_MS, 1.0841, 1.08410001, 1.08409999, 1.0841, 0.33333333, 1.0841, 1.0841, "kraken+demo"
    )
    assert found._replace(minute=None, last=None) == written._replace(minute=None, last=None)
    row = LastQuote.objects.get()
    assert (row.bid, row.ask, row.quoted_at) == (Decimal("1.0841"), Decimal("1.08424"), moment(NOON_MS + 250))
    assert (row.flow_state, row.source_seqs) == (FLOW_STATE, written.source_seqs)


def test_second_one_takes_the_place_of_the_first_but_for_its_kind(lease: Lease) -> None:
    instrument, other = make_instrument("EURUSD"), make_instrument("GBPUSD")
    write(lease, {each.pk: make_checkpoint(each.symbol) for each in (other, instrument)})
    LastQuote.objects.update(kind_since=NOON)

    write(lease, {instrument.pk: make_checkpoint("EURUSD", 1.2, NOON_MS + MINUTE_MS, seq=8)})

    assert dict(LastQuote.objects.values_list("instrument__symbol", "seq")) == {"EURUSD": 8, "GBPUSD": 7}
    assert LastQuote.objects.get(pk=instrument.pk).kind_since == NOON
    assert FormingMinute.objects.get(pk=instrument.pk).open == Decimal("1.2")
    assert FormingMinute.objects.get(pk=other.pk).open == Decimal("1.0841")


def test_nothing_quoted_and_no_flow_is_null(lease: Lease) -> None:
    instrument = make_instrument()

    write(lease, {instrument.pk: Checkpoint(None, None, 3, 2)})

    row = LastQuote.objects.get()
    assert (row.bid, row.ask, row.quoted_at, row.flow_state, row.source_seqs) == (None, None, None, None, {})
    assert LastQuote.objects.filter(flow_state__isnull=True).exists()
    assert not FormingMinute.objects.exists()


def test_crossed_quote_is_refused_by_the_database() -> None:
    instrument = make_instrument()
    crossed = make_checkpoint(instrument.symbol)._replace(last=Tick(instrument.symbol, 2.0, 1.0, NOON_MS))

    with pytest.raises(IntegrityError), transaction.atomic():
        checkpoints.write_quotes([(instrument.pk, crossed)])
