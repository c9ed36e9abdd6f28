"""The uptime of each component by day: counted in minutes, from the first one that was written down."""

from time import monotonic
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

import msgspec

from core.times import midnight

from .components import NAMES
from .models import ComponentMinute, Minute

DAYS = 90
MONTH_DAYS = 30
Rows = dict[date, dict[str, Any]]

# Yesterday may still change, by minutes that waited for the database.
YESTERDAY_KEPT_S = 600.0


class ComponentDay(msgspec.Struct):
    day: str
    up_percent: float | None
    """None where nothing was written down, or there was nothing to measure."""
    down_minutes: float | None = None

    @property
    def on(self) -> date:
        return date.fromisoformat(self.day)

    @property
    def down(self) -> str:
        down = self.down_minutes or 0
        if 0 < down < 1:
            return f"{max(1, round(60 * down))} s"
        hours, minutes = divmod(round(down), 60)
        return " ".join([*([f"{hours} h"] if hours else []), *([f"{minutes} min"] if minutes else [])])

    @property
    def uptime(self) -> str:
        return uptime_text(self.up_percent)

    @property
    def level(self) -> str:
        if self.up_percent is None:
            return "none"
        return "good" if self.up_percent >= 99.9 else "fair" if self.up_percent >= 99 else "bad"


class ComponentHistory(msgspec.Struct):
    days: list[ComponentDay]
    """The last 90, the oldest first."""
    uptime_percent: float | None


def uptime_text(percent: float | None) -> str:
    """Cut off and not rounded: what was down for a second was not up for 100%."""
    if percent is None:
        return "not measured"
    hundredths = int(100 * percent + 1e-6)
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + "%"


class PastDays:
    """What was written down about the days before today. It is many rows, so each day is asked for seldom."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._rows: Rows = {}
        self._first = self._today = datetime.max.replace(tzinfo=UTC)
        self._asked_s = float("-inf")

    def get(self, first: datetime, today: datetime) -> Rows:
        is_fresh = monotonic() - self._asked_s < YESTERDAY_KEPT_S
        if self._first > first or self._today > today:
            since = first
        elif self._today < today or not is_fresh:
            since = min(self._today, today) - timedelta(days=1)
        else:
            return self._rows
        minutes = ComponentMinute.objects.since(max(since, first)).filter(at__lt=today)
        self._rows = {**self._rows, **{row["day"]: row for row in minutes.by_day()}}
        self._first, self._today, self._asked_s = min(self._first, first), today, monotonic()
        return self._rows


past_days = PastDays()


class Histories(NamedTuple):
    components: dict[str, ComponentHistory]
    served: ComponentHistory
    """The price stream over the last month."""


def component_histories(now: datetime) -> Histories:
    today = midnight(now)
    first_day = today - timedelta(days=DAYS - 1)
    # The current minute, and the one being written down, are not counted.
    end = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    first = ComponentMinute.objects.order_by("at").first()
    span = Span(end if first is None else max(first.at, first_day), end)
    of_today = ComponentMinute.objects.since(today).filter(at__lt=end).by_day()
    rows = {**past_days.get(first_day, today), **{row["day"]: row for row in of_today}}
    dates = [(first_day + timedelta(days=n)).date() for n in range(DAYS)]
    measured = {name: first is not None and getattr(first, name) is not None for name in NAMES}
    found = {name: history_of(name, dates, rows, span, is_measured=measured[name]) for name in NAMES}
    before = with_minutes_before(rows, span)
    found["market"] = history_of("market", dates, *before, is_measured=True)
    return Histories(found, history_of("market", dates[-MONTH_DAYS:], *before, is_measured=True))


class Span(NamedTuple):
    """Of what was written down."""

    first: datetime
    end: datetime


def with_minutes_before(rows: Rows, span: Span) -> tuple[Rows, Span]:
    """Before components were looked at, minutes with an engine were written down: the price stream worked."""
    ever = Minute.objects.first_at()
    # Of those of more than a month ago, the first alone is kept.
    first = None if ever is None else max(ever, midnight(span.end - timedelta(days=MONTH_DAYS - 1)))
    if first is None or first >= span.first:
        return rows, span
    merged = dict(rows)
    for day, served in Minute.objects.since(first).filter(at__lt=span.first).served_by_day().items():
        row = rows.get(date.fromisoformat(day), {})
        counted = {name: (row.get(name) or 0) + served for name in ("minutes", "market_seen", "market_up")}
        merged[date.fromisoformat(day)] = row | counted
    return merged, Span(first, span.end)


def history_of(
    name: str, dates: list[date], rows: Rows, span: Span, *, is_measured: bool
) -> ComponentHistory:
    """`is_measured`: whether there was something to measure before these days."""
    days, judged, up = [], 0, 0.0
    for day in dates:
        row = rows.get(day, {})
        seen, recorded = row.get(f"{name}_seen", 0), row.get("minutes", 0)
        is_measured = is_measured or seen > 0
        # A minute that nobody wrote down was served by nobody. It counts as far as the component is judged at
        # all: with its share of the day's minutes, and on a day without any, if it was judged before.
        share = seen / recorded if recorded else float(is_measured)
        of_day = seen + round(max(0, minutes_of(day, *span) - recorded) * share)
        up_of_day = min(row.get(f"{name}_up") or 0.0, of_day)
        percent = up_percent(up_of_day, of_day) if of_day else None
        down = round(of_day - up_of_day, 2) if of_day else None
        days.append(ComponentDay(day.isoformat(), percent, down))
        judged, up = judged + of_day, up + up_of_day
    return ComponentHistory(days, up_percent(up, judged) if judged else None)


def minutes_of(day: date, first: datetime, end: datetime) -> int:
    begins = datetime.combine(day, time.min, UTC)
    within = min(begins + timedelta(days=1), end) - max(begins, first)
    return int(within.total_seconds()) // 60


def up_percent(up: float, minutes: int) -> float:
    """What was down for a moment is not rounded up to 100."""
    percent = round(100 * up / minutes, 3)
    return percent if up >= minutes else min(percent, 99.999)
