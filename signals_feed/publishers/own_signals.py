"""A publisher's signals, for themselves."""

from collections.abc import Iterable, Mapping

from accounts.models import User
from signals_feed.models import Signal

OWN = (
    *("id", "instrument__symbol", "direction", "entry", "stop_loss", "take_profit", "tradable_price"),
    *("fill_price", "filled_at", "status", "published_at", "expires_at", "cancel_reason", "cancelled_at"),
    *("close_price", "closed_at", "close_reason", "pnl", "pnl_percent", "pnl_r", "best_r", "worst_r"),
)


def has_published(user: User) -> bool:
    return Signal.objects.filter(user=user).exists()


def open_symbols(user: User) -> Iterable[str]:
    return Signal.objects.active().filter(user=user).values_list("instrument__symbol", flat=True)


def own_signals(user: User) -> Iterable[Mapping[str, object]]:
    own = Signal.objects.filter(user=user).order_by("published_at", "pk")
    rows: Iterable[Mapping[str, object]] = own.values(*OWN)
    return rows
