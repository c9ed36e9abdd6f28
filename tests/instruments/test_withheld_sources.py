"""Which instruments are offered while the data of some sources may not be handed on."""

from __future__ import annotations

import asyncio
import time

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

from core.contract.errors import SymbolNotFound
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from instruments.catalogue import Catalogue, catalogue, may_be_passed_on, offer_changed, stored_sources_asked
from instruments.models import Instrument, WithheldSource
from market.models import LastQuote
from tests.accounts.back_office.office import Office, published
from tests.core.events.following import follow
from tests.factories import make_candle, make_instrument


@pytest.mark.parametrize(
    ("feeds", "withheld", "may"),
    [
        (("kraken",), (), True),
        (("kraken",), ("oanda",), True),
        (("kraken",), ("kraken",), False),
        (("kraken", "binance"), ("binance",), False),
        (("kraken+binance",), ("binance",), False),
        (("krakenx",), ("kraken",), True),
        (("push:desk",), ("push",), False),
        (("push:desk",), ("push:desk",), False),
        (("push:desk",), ("push:other",), True),
        # Every key may send to it.
        (("push",), ("push:desk",), False),
        (("", "import"), ("push",), True),
    ],
)
def test_what_has_a_withheld_source_is_not_handed_on(
    feeds: tuple[str, ...], withheld: tuple[str, ...], may: bool
) -> None:
    assert may_be_passed_on(feeds, withheld) is may


def withhold(name: str) -> None:
    WithheldSource.objects.create(name=name, why="Its terms.")
    catalogue.load_now()


@pytest.mark.django_db
def test_the_engine_goes_on_with_what_is_not_offered() -> None:
    make_instrument("BTCUSD", source="kraken:XBT/USD", fallback="binance")
    make_instrument("EURUSD", source="push:desk")
    withhold("binance")
    assert [facts.symbol for facts in catalogue.offered()] == ["EURUSD"]
    assert {facts.symbol for facts in catalogue.active()} == {"BTCUSD", "EURUSD"}
    assert catalogue.find("BTCUSD") is not None
    assert not catalogue.is_offered("BTCUSD")
    with pytest.raises(SymbolNotFound, match="terms of its source"):
        catalogue.get("btcusd")


@pytest.mark.django_db
def test_what_a_former_source_sent_is_not_handed_on_either() -> None:
    of_candles = make_instrument("EURUSD", source="push:desk")
    make_candle(of_candles, source="push:desk+oanda")
    of_quote = make_instrument("GBPUSD", source="push:desk")
    LastQuote.objects.create(instrument=of_quote, source="oanda")
    make_instrument("USDJPY", source="push:desk")
    withhold("oanda")
    assert [facts.symbol for facts in catalogue.offered()] == ["USDJPY"]


@transaction.atomic
def announce_import(symbol: str) -> None:
    ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, symbol=symbol)


@pytest.mark.django_db(transaction=True)
async def test_what_is_imported_while_imports_are_withheld_is_not_handed_on() -> None:
    instrument = await in_thread(make_instrument, "EURUSD", source="push:desk")
    await in_thread(withhold, "import")
    assert catalogue.is_offered("EURUSD")
    events = EventFeed()
    follow(events, catalogue)
    await events.start()
    try:
        await in_thread(make_candle, instrument, source="push+import")
        await in_thread(announce_import, "EURUSD")
        await events.read()
    finally:
        await events.stop()
    assert not catalogue.is_offered("EURUSD")


@pytest.mark.parametrize("name", ["krakn", "kraken:BTC/USD", "", "imports", "import:file"])
def test_nothing_but_a_source_can_be_withheld(name: str) -> None:
    for known in ("push:desk", "import"):
        WithheldSource(name=known, why="Its terms.").full_clean(validate_unique=False)
    with pytest.raises(ValidationError):
        WithheldSource(name=name, why="Its terms.").full_clean(validate_unique=False)


@pytest.mark.django_db
def test_what_was_read_first_never_replaces_what_was_read_later() -> None:
    make_instrument("EURUSD")
    WithheldSource.objects.create(name="oanda")

    def make_another_meanwhile(**_: object) -> tuple[str, ...]:
        """Asked once the rows have been read."""
        stored_sources_asked.disconnect(make_another_meanwhile)
        make_instrument("GBPUSD")
        return ()

    stored_sources_asked.connect(make_another_meanwhile)
    catalogue.load_now()
    assert [facts.symbol for facts in catalogue.all()] == ["EURUSD", "GBPUSD"]


def test_staff_withhold_a_source_and_hand_it_on_again(office: Office) -> None:
    add = "/admin/instruments/withheldsource/add/"
    assert "Without a symbol" in office.post(add, name="kraken:XBT/USD", why="x").content.decode()
    office.post(add, name="oanda", why="Its terms forbid redistribution.")
    source = WithheldSource.objects.get()
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")]
    office.post(f"/admin/instruments/withheldsource/{source.pk}/delete/", post="yes")
    assert not WithheldSource.objects.exists()
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")] * 2


@pytest.mark.django_db(transaction=True)
async def test_what_is_offered_again_is_told_in_the_turn_in_which_it_is_shown() -> None:
    """Else its next tick would come before the notice."""
    await in_thread(make_instrument, "EURUSD", active=False)
    own, told = Catalogue(), list[tuple[str, list[str]]]()

    def hear(change: str, symbols: list[str], **_: object) -> None:
        told.append((change, symbols))

    offer_changed.connect(hear, sender=own)
    await own.load()
    await in_thread(Instrument.objects.update, active=True)
    loading = asyncio.create_task(own.load())
    await asyncio.sleep(0)
    for _ in range(50):
        # Only the thread goes on meanwhile.
        time.sleep(0.01)  # noqa: ASYNC251 - it keeps the loop from going on
        assert not own.is_offered("EURUSD")
    await loading
    assert own.is_offered("EURUSD")
    assert told == [("activated", ["EURUSD"])]
