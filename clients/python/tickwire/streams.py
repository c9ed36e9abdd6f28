"""The streams: how a call becomes a subscription. It does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import Json
from .methods import Followed, Stream
from .missed import OnMissed, warn
from .session import (
    AnnouncedSession,
    CandleSession,
    FlowSession,
    Manner,
    OnNotice,
    Session,
    as_list,
    log_notice,
)
from .state import State

if TYPE_CHECKING:
    from .types import (
        AbsorptionSignal,
        CandleUpdate,
        OrderFlowTick,
        PriceTick,
        PublishedNews,
    )


class Streams:
    """Each takes a `state`, and goes on from its places. With `fill`, missing frames are fetched over REST,
    and come before those that showed that they are missing."""

    api_key: str
    walk_retries: int

    @Stream
    def watch(
        self,
        *symbols: str,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
        fill: bool = False,
    ) -> Followed[PriceTick]:
        """Prices as they happen."""
        manner = self._manner(on_missed, on_notice, state, fill)
        return Followed(Session("market", self.api_key, symbols, ["snapshot"], manner))

    @Stream
    def order_flow(
        self,
        *symbols: str,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
    ) -> Followed[OrderFlowTick | AbsorptionSignal]:
        """The volume bought and sold with each tick, and absorption; without symbols, of all instruments."""
        manner = self._manner(on_missed, on_notice, state)
        return Followed(FlowSession("orderflow", self.api_key, symbols, (), manner))

    @Stream
    def follow_candles(
        self,
        *symbols: str,
        timeframes: Sequence[str] = ("1m",),
        forming: bool = False,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
        fill: bool = False,
    ) -> Followed[CandleUpdate]:
        """The last closed candle of each timeframe, which may be days old and is marked `snapshot`, then each
        candle when it closes, which is the `time` of its frame. One with the same `candle.time` replaces the
        earlier one. With `forming`, also its state before that, once a second, with `closed` false."""
        manner = self._manner(on_missed, on_notice, state, fill)
        return Followed(CandleSession(self.api_key, symbols, timeframes, forming, manner))

    @Stream
    def follow_news(
        self,
        *symbols: str,
        categories: Sequence[str] = (),
        since: str | int | None = None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        state: State | None = None,
    ) -> Followed[PublishedNews]:
        """News items when they enter the feed, of all instruments and categories unless some are named. With
        `since`, first those after the item with that id."""
        more: Json = {"categories": as_list(categories)} if categories else {}
        manner = self._manner(on_missed, on_notice, state)
        return Followed(AnnouncedSession("news", self.api_key, symbols, since, more, manner))

    def signal_session(
        self, symbols: Sequence[str], since: str | None, *, closures: bool, manner: Manner
    ) -> Session:
        more: Json = {"events": ["signal.closed"]} if closures else {}
        return AnnouncedSession("signals", self.api_key, symbols, since, more, manner)

    def _manner(
        self, on_missed: OnMissed, on_notice: OnNotice, state: State | None, fill: bool = False
    ) -> Manner:
        return Manner(on_missed, on_notice, state or State(), fill, tries=self.walk_retries)
