"""What every adapter does, whatever its venue speaks."""

from __future__ import annotations

from .inlets import RecordingInlet, running
from .venue import NOON_MS, FakeVenue


async def test_quotes_come_under_our_names(venue: FakeVenue) -> None:
    inlet = RecordingInlet()
    usual, own = venue.symbols.values()

    async with running(venue.make_feed(), inlet):
        await venue.visited()
        await venue.send(
            venue.quote(usual, 1.08, 1.0802, NOON_MS), venue.quote(own, 2_400.5, 2_401, NOON_MS + 1)
        )
        ticks = await inlet.until_ticks(2)

    assert [(tick.symbol, tick.bid, tick.ask) for tick in ticks] == [
        ("EURUSD", 1.08, 1.0802),
        ("XAUUSD", 2_400.5, 2_401),
    ]
