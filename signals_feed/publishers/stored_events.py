"""A publisher's fills and closes, as the database has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.db.models import FilteredRelation, Q

from signals_feed.exits import CANCELLED, gain, paid_entry
from signals_feed.models import Evidence, SignalQuerySet
from signals_feed.record import MINUTES, SIMULATED, VENUES

from .record import LISTS, Closed, Filled, ListName

VENUE, PUSHED, DEMONSTRATION = LISTS


def list_of(feed: str) -> ListName | None:
    """None if the maker of the price is unknown."""
    feeds = {*feed.split("+")} - {MINUTES, ""}
    if not feeds:
        return None
    if feeds & {*SIMULATED}:
        return DEMONSTRATION
    # Not `kraken:moved`, which did not come from the venue's own address.
    return VENUE if feeds <= {*VENUES} else PUSHED


class StoredSignal(NamedTuple):
    key: UUID
    symbol: str
    direction: str
    entry: Decimal
    stop_loss: Decimal
    take_profit: Decimal
    tradable_price: Decimal
    published_at: datetime
    expires_at: datetime
    rules: int
    is_demo: bool | None
    rank_unit: Decimal | None
    fill_price: Decimal | None
    filled_at: datetime | None
    fill_feed: str | None
    fill_seq: int | None
    close_price: Decimal | None
    closed_at: datetime | None
    close_reason: str
    best_r: Decimal | None
    worst_r: Decimal | None
    exit_feed: str | None
    """Empty for a stored minute, which is one of the feed that filled it."""
    exit_seq: int | None
    is_late: bool
    """Published by earlier rules after the new ones had begun: it counts nowhere."""

    @property
    def is_filled(self) -> bool:
        return self.rules == 1 or self.fill_price is not None

    @property
    def is_ahead(self) -> bool:
        """Or may be, while it is open."""
        return self.close_price is None or gain(self.direction, self.paid, self.close_price) > 0

    @property
    def has_no_end(self) -> bool:
        """It was cancelled at its own fill, short of its target: no later price could be shown."""
        is_at_fill = self.close_reason == CANCELLED and bool(self.fill_seq) and self.fill_seq == self.exit_seq
        return is_at_fill and gain(self.direction, self.take_profit, self.paid) < 0

    @property
    def paid(self) -> Decimal:
        offered = self.tradable_price if self.fill_price is None else self.fill_price
        return paid_entry(self.direction, self.entry, offered)

    @property
    def ranked_in(self) -> ListName | None:
        """By rules 1, publishers chose among prices that they knew."""
        if self.rules == 1 or self.rank_unit is None:
            return None
        return list_of(self.fill_feed or "") if self.is_demo is False else DEMONSTRATION

    @property
    def listed_in(self) -> ListName:
        """Prices whose maker is unknown were at least recorded here."""
        return DEMONSTRATION if self.is_demo else list_of(self.fill_feed or "") or PUSHED

    def fill(self, *, holds: bool) -> Filled:
        return Filled(
            self.key,
            self.filled_at or self.published_at,
            self.symbol,
            self.direction,
            self.paid,
            self.stop_loss,
            self.rank_unit or Decimal(0),
            self.ranked_in,
            self.listed_in,
            holds,
            self.expires_at,
        )

    def close(self, *, holds: bool) -> Closed | None:
        if self.close_price is None or self.closed_at is None:
            return None
        gained = gain(self.direction, self.paid, self.close_price)
        # Else staff could withhold the price of a loser, change its source, and leave the publisher no loss.
        gained = -abs(self.paid - self.stop_loss) if self.has_no_end else gained
        return Closed(
            self.key,
            max(self.closed_at, self.filled_at or self.published_at),
            gained if holds else min(gained, Decimal(0)),
            self.close_reason,
            self.best_r if holds else None,
            self.worst_r,
            keeps_mark=not self.exit_feed or list_of(self.exit_feed) == list_of(self.fill_feed or ""),
        )


COLUMNS = {
    **{"key": "pk", "symbol": "instrument__symbol"},
    **{f"{kind}_{name}": f"{kind}__{name}" for kind in ("fill", "exit") for name in ("feed", "seq")},
}


def stored_signals(signals: SignalQuerySet) -> Iterator[StoredSignal]:
    of_kind = {
        name: FilteredRelation("evidence", condition=Q(evidence__kind=kind))
        for name, kind in (("fill", Evidence.Kind.FILL), ("exit", Evidence.Kind.EXIT))
    }
    columns = [COLUMNS.get(name, name) for name in StoredSignal._fields]
    rows = signals.with_origin().annotate(**of_kind).values_list(*columns)
    return (StoredSignal(*row) for row in rows.iterator())
