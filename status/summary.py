"""The state of the service, for the public status page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic
from typing import Any, NamedTuple

import msgspec
from django.utils import timezone
from django.utils.text import get_text_list

from core import clock
from core.times import age_text, midnight
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime as market

from .models import COMPONENTS, NAMES, ComponentMinute, Incident, Minute
from .picture import LatencyMinute
from .recorder import component_watch, fresh_share

# The uptime of each component by day: counted in minutes, from the first one that was written down.
DAYS = 90
MONTH_DAYS = 30
Rows = dict[date, dict[str, Any]]

# Yesterday may still change, by minutes that waited for the database.
YESTERDAY_KEPT_S = 600.0


class ComponentDay(msgspec.Struct):
    day: str
    up_percent: float | None
    """None if nothing was recorded, or there was nothing to measure."""
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
    """The records of the days before today. They are many rows, so each day is queried seldom."""

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
    first: datetime
    end: datetime


def with_minutes_before(rows: Rows, span: Span) -> tuple[Rows, Span]:
    """Before components were recorded, minutes with an engine were: the price stream worked."""
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
        # A minute that no process wrote down was served by none. It counts as far as the component is judged
        # at all: with its share of the day's minutes, and on a day without any, if it was judged before.
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
    """A short outage is not rounded up to 100."""
    percent = round(100 * up / minutes, 3)
    return percent if up >= minutes else min(percent, 99.999)


LATENCY_FOR = timedelta(hours=1)
WELL = "Everything works."
MOST_NAMED = 3

# Shares of a component: below the first it works in part, below the second it is down.
IN_ORDER, IN_PART = 0.995, 0.5
SEVERITY = ("operational", "maintenance", "degraded", "outage")
IMPACTS = {"major": "outage", "minor": "degraded", "maintenance": "maintenance"}
OF_DATABASE = ("rest", "signals", "news")


class InstrumentFreshness(msgspec.Struct):
    symbol: str
    state: str
    age_seconds: float | None
    """Since the last tick; None before the first."""

    @property
    def age(self) -> str:
        if self.age_seconds is None:
            return "never"
        return f"{age_text(self.age_seconds)} ago"


class DayUptime(msgspec.Struct):
    day: str
    up_percent: float


class ComponentSummary(msgspec.Struct):
    name: str
    title: str
    state: str
    """operational, degraded or outage; unknown before the first look, and where there is nothing to judge"""
    uptime_percent: float | None
    """Over the last 90 days, or since the first minute that was written down."""
    days: list[ComponentDay]

    @property
    def uptime(self) -> str:
        return uptime_text(self.uptime_percent)


class IncidentNote(msgspec.Struct):
    at: datetime
    text: str


class IncidentSummary(msgspec.Struct):
    id: int
    title: str
    impact: str
    started_at: datetime
    ended_at: datetime | None
    notes: list[IncidentNote]

    @property
    def kind(self) -> str:
        return Incident.Impact(self.impact).label.lower()


class Summary(msgspec.Struct):
    status: str
    """operational, degraded, maintenance or outage"""
    message: str
    at: datetime
    uptime_percent: float | None
    """Of the price stream, over the last 30 days or since the first start."""
    days: list[DayUptime]
    latency: list[LatencyMinute]
    feeds: list[InstrumentFreshness]
    incidents: list[IncidentSummary]
    components: list[ComponentSummary]


def summary() -> Summary:
    now = timezone.now()
    feeds = [feed_of(facts) for facts in sorted(catalogue.offered(), key=lambda facts: facts.symbol)]
    incidents = [summary_of(incident) for incident in Incident.objects.newest()[:10]]
    histories = component_histories(now)
    served = histories.served
    days = [DayUptime(day.day, day.up_percent) for day in served.days if day.up_percent is not None]
    minutes = Minute.objects.since(now - LATENCY_FOR).slowest()
    components = components_now(feeds, histories.components)
    status, message = verdict(components, feeds, list(Incident.objects.open()))
    latency = [LatencyMinute(*minute) for minute in minutes]
    return Summary(status, message, now, served.uptime_percent, days, latency, feeds, incidents, components)


def without_database(last: Summary) -> Summary:
    """The last summary, with the outage added."""
    message = (
        "The database is not responding, so logins and changes fail. "
        "The figures below are from before the outage."
    )
    components = [
        msgspec.structs.replace(each, state="outage") if each.name in OF_DATABASE else each
        for each in last.components
    ]
    return msgspec.structs.replace(last, status="outage", message=message, components=components)


def components_now(
    feeds: Sequence[InstrumentFreshness], histories: Mapping[str, ComponentHistory]
) -> list[ComponentSummary]:
    shares = component_watch.latest | {"feeds": fresh_share(feed.state for feed in feeds)}
    found = []
    for name, title, _ in COMPONENTS:
        state = state_of(shares.get(name))
        # Requests for other instruments are answered.
        state = "degraded" if name == "feeds" and state == "outage" else state
        found.append(
            ComponentSummary(name, title, state, histories[name].uptime_percent, histories[name].days)
        )
    return found


def state_of(share: float | None) -> str:
    if share is None:
        return "unknown"
    return "operational" if share >= IN_ORDER else "degraded" if share >= IN_PART else "outage"


def verdict(
    components: Sequence[ComponentSummary],
    feeds: Sequence[InstrumentFreshness],
    incidents: Sequence[Incident],
) -> tuple[str, str]:
    """Of the worst that is known. Where both are as bad, staff know more than the machine."""
    titles = {IMPACTS[incident.impact]: incident.title for incident in incidents}
    by_staff = max(titles, key=SEVERITY.index, default="operational")
    seen = max(
        (each.state for each in components if each.state != "unknown"),
        key=SEVERITY.index,
        default="operational",
    )
    if by_staff != "operational" and SEVERITY.index(by_staff) >= SEVERITY.index(seen):
        return by_staff, titles[by_staff]
    return seen, sentence(seen, components, feeds)


def sentence(
    status: str, components: Sequence[ComponentSummary], feeds: Sequence[InstrumentFreshness]
) -> str:
    stale = [feed.symbol for feed in feeds if feed.state == "stale"]
    of_feeds = f"No fresh prices of {', '.join(stale[:5])}{' and others' if stale[5:] else ''}."
    if status == "operational":
        return all_well(components)
    parts = []
    for state, words in (("outage", "Down"), ("degraded", "Partly available")):
        names = [each.title for each in components if each.state == state and each.name != "feeds"]
        parts += [f"{words}: {listed(names)}."] if names else []
    return " ".join([*parts, of_feeds] if stale else parts)


def all_well(components: Sequence[ComponentSummary]) -> str:
    """Mentions what failed earlier today, because it is red below."""
    hurt = [each for each in components if each.days[-1].level not in ("good", "none")]
    if not hurt:
        return WELL
    if len(hurt) <= MOST_NAMED:
        what = f"the {listed([each.title for each in hurt])}"
    elif len(hurt) == len(components):
        what = "all components"
    else:
        what = f"{len(hurt)} of the {len(components)} components"
    longest = max((each.days[-1] for each in hurt), key=lambda day: day.down_minutes or 0).down
    lasted = f" for {'up to ' if hurt[1:] else ''}{longest}" if longest else ""
    return f"Everything works now. Earlier today there were problems with {what}{lasted}."


def listed(names: Sequence[str]) -> str:
    """As part of a sentence."""
    lower = [name if name.startswith("REST") else name[0].lower() + name[1:] for name in names]
    return get_text_list(lower, "and")


def feed_of(facts: InstrumentFacts) -> InstrumentFreshness:
    quote = market.quote(facts.symbol)
    age_s = None if quote is None else quote.age_ms(clock.now_ms()) / 1000
    return InstrumentFreshness(facts.symbol, market.state(facts), age_s)


def summary_of(incident: Incident) -> IncidentSummary:
    notes = [IncidentNote(note.at, note.text) for note in incident.notes.all()]
    times = incident.started_at, incident.ended_at
    return IncidentSummary(incident.pk, incident.title, incident.impact, *times, notes)
