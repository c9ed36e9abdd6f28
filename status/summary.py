"""The state of the service, for anybody who asks."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec
from django.utils import timezone

from core import clock
from core.times import midnight
from instruments.catalogue import InstrumentFacts, catalogue
from market import runtime as market

from .models import Incident, Minute
from .picture import LatencyMinute

LATENCY_FOR = timedelta(hours=1)
DAYS = 30

# From the first number of seconds on, an age is given in units of the second number.
UNITS = ((48 * 3600, 86_400, "days"), (2 * 3600, 3600, "h"), (120, 60, "min"), (0, 1, "s"))


class InstrumentFreshness(msgspec.Struct):
    symbol: str
    state: str
    age_seconds: float | None
    """Since the last tick; None before the first."""

    @property
    def age(self) -> str:
        if self.age_seconds is None:
            return "never"
        size, unit = next((size, unit) for least, size, unit in UNITS if self.age_seconds >= least)
        return f"{self.age_seconds // size:.0f} {unit} ago"


class DayUptime(msgspec.Struct):
    day: str
    up_percent: float


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


class Summary(msgspec.Struct):
    status: str
    """operational, degraded, maintenance or outage"""
    message: str
    at: datetime
    uptime_percent: float | None
    """Over the last 30 days, or since the first start."""
    days: list[DayUptime]
    latency: list[LatencyMinute]
    feeds: list[InstrumentFreshness]
    incidents: list[IncidentSummary]


def summary() -> Summary:
    now = timezone.now()
    feeds = [feed_of(facts) for facts in sorted(catalogue.offered(), key=lambda facts: facts.symbol)]
    incidents = [summary_of(incident) for incident in Incident.objects.newest()[:10]]
    days, uptime = days_up(now)
    minutes = Minute.objects.since(now - LATENCY_FOR).slowest()
    status, message = verdict(feeds, list(Incident.objects.open()))
    return Summary(
        status, message, now, uptime, days, [LatencyMinute(*minute) for minute in minutes], feeds, incidents
    )


def without_database(last: Summary) -> Summary:
    """The last summary, with the outage added."""
    message = "The database does not answer: logins and changes fail. What follows was known before."
    return msgspec.structs.replace(last, status="outage", message=message)


def verdict(feeds: Sequence[InstrumentFreshness], incidents: Sequence[Incident]) -> tuple[str, str]:
    """Staff know more than the machine, so their incidents come first."""
    impacts = {incident.impact: incident for incident in incidents}
    for impact, status in (("major", "outage"), ("minor", "degraded"), ("maintenance", "maintenance")):
        if impact in impacts:
            return status, impacts[impact].title
    stale = [feed.symbol for feed in feeds if feed.state == "stale"]
    if stale:
        return "degraded", f"No fresh prices of {', '.join(stale[:5])}{' and others' if stale[5:] else ''}."
    return "operational", "Everything works."


def feed_of(facts: InstrumentFacts) -> InstrumentFreshness:
    quote = market.quote(facts.symbol)
    age_s = None if quote is None else max(0, clock.now_ms() - quote.time_ms) / 1000
    return InstrumentFreshness(facts.symbol, market.state(facts), age_s)


def days_up(now: datetime) -> tuple[list[DayUptime], float | None]:
    """The uptime of each of the last days and of all of them together, counted from the very first minute."""
    first_day = midnight(now - timedelta(days=DAYS - 1))
    # The current minute, and the one being written down, are not counted.
    end = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    ever = Minute.objects.first_at()
    if ever is None or ever >= end:
        return [], None
    # The first minute ever and not that of these days, which may begin with an outage.
    first = max(ever, first_day)
    served = Minute.objects.since(first).filter(at__lt=end).served_by_day()
    dates = ((first.date() + timedelta(days=n)) for n in range((now.date() - first.date()).days + 1))
    days = [
        DayUptime(day.isoformat(), up_percent(served.get(day.isoformat(), 0), minutes_of(day, first, end)))
        for day in dates
    ]
    return days, up_percent(sum(served.values()), int((end - first).total_seconds()) // 60)


def minutes_of(day: date, first: datetime, end: datetime) -> int:
    begins = datetime.combine(day, time.min, UTC)
    within = min(begins + timedelta(days=1), end) - max(begins, first)
    return int(within.total_seconds()) // 60


def up_percent(served: int, minutes: int) -> float:
    return round(100 * served / minutes, 3) if minutes > 0 else 100.0


def summary_of(incident: Incident) -> IncidentSummary:
    notes = [IncidentNote(note.at, note.text) for note in incident.notes.all()]
    times = incident.started_at, incident.ended_at
    return IncidentSummary(incident.pk, incident.title, incident.impact, *times, notes)
