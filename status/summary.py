"""The state of the service, for anybody who asks."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from django.utils import timezone
from django.utils.text import get_text_list

from core import clock
from core.times import age_text
from instruments.catalogue import InstrumentFacts, catalogue
from market import runtime as market

from .components import COMPONENTS
from .history import ComponentDay, ComponentHistory, component_histories, uptime_text
from .models import Incident, Minute
from .picture import LatencyMinute
from .watch import component_watch, fresh_share

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
        # Whoever asks for other instruments is served.
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
    said = {IMPACTS[incident.impact]: incident.title for incident in incidents}
    by_staff = max(said, key=SEVERITY.index, default="operational")
    seen = max(
        (each.state for each in components if each.state != "unknown"),
        key=SEVERITY.index,
        default="operational",
    )
    if by_staff != "operational" and SEVERITY.index(by_staff) >= SEVERITY.index(seen):
        return by_staff, said[by_staff]
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
    """What was wrong earlier today is red below, so it is said here."""
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
