"""The back office of the market: candles, always of one instrument and interval and never counted; ingest
keys; and the state of feeds and engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.back_office import NO_OWNER, KeyAdmin, ReadOnlyAdmin, staff_page
from accounts.form_fields import refuse_unprintable
from accounts.models import Account
from accounts.rights import PowerRefused
from core.times import age_text, moment
from instruments.admin import price_column
from instruments.models import Instrument
from market.engine.admission import is_of
from market.engine.status import FeedStatus
from market.models import IngestKey
from market.overview import InstrumentOverview, Overview, overview
from market.own_prices import account_of
from market.prices.candles import TIMEFRAMES
from market.push.keys import allow_symbols, check_symbols, issue_ingest_key, refuse_change, revoke_ingest_key
from market.runtime import bus_url

from .models import Candle

# Ingest keys in the back office.
if TYPE_CHECKING:
    ModelForm = forms.ModelForm[IngestKey]
else:
    ModelForm = forms.ModelForm
NEVER_EDITED = ("name", "prefix", "belongs_to", "state", "created_at", "last_used_at", "revoked_at")


class SymbolsForm(ModelForm):
    owner = forms.CharField(
        required=False,
        validators=(refuse_unprintable,),
        help_text="The username of its owner, who then cannot publish signals on the symbols it may send.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )

    class Meta:
        model = IngestKey
        fields = ("symbols",)
        widgets = {"symbols": UnfoldAdminTextareaWidget(attrs={"rows": 3})}

    def clean_symbols(self) -> str:
        return check_symbols(self.cleaned_data["symbols"])

    def clean_owner(self) -> Account | None:
        if not (username := self.cleaned_data["owner"]):
            return None
        if (account := account_of(username)) is None:
            raise ValidationError(f"There is no user {username}.")
        return account

    def clean(self) -> None:
        super().clean()
        given = self.cleaned_data
        if self.instance.pk is not None and "symbols" in given:
            try:
                refuse_change(self.instance, given["symbols"], self.instance.account or given.get("owner"))
            except PowerRefused as error:
                self.add_error(None, str(error))


class IssueIngestKeyForm(SymbolsForm):
    class Meta(SymbolsForm.Meta):
        fields = ("name", "symbols")  # type: ignore[assignment]
        widgets = {**SymbolsForm.Meta.widgets, "name": UnfoldAdminTextInputWidget}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"].help_text += " Empty: you."


def issue(name: str, symbols: str, owner: Account | None, *, by: str) -> tuple[IngestKey, str]:
    return issue_ingest_key(name, symbols, by=by, account=owner or account_of(by))


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "Active"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        chosen = self.value()
        return queryset if chosen is None else queryset.filter(revoked_at__isnull=chosen == "active")


@admin.register(IngestKey)
class IngestKeyAdmin(KeyAdmin[IngestKey]):
    # Staff who issue keys may revoke all keys.
    owner = NO_OWNER
    form = SymbolsForm
    issue_form = IssueIngestKeyForm  # type: ignore[assignment]
    issue_one = staticmethod(issue)
    revoke_one = staticmethod(revoke_ingest_key)
    list_display = ("prefix", "name", "belongs_to", "may_send", "state", "last_used_at", "created_at")
    list_select_related = ("account__user",)
    list_filter = (StateFilter,)
    search_fields = ("prefix__startswith", "name__startswith")
    search_help_text = "Prefix or name starts with…"
    readonly_fields = NEVER_EDITED

    def get_fields(self, request: HttpRequest, obj: IngestKey | None = None) -> tuple[str, ...]:
        whose = "owner" if obj is not None and obj.account is None else "belongs_to"
        return (*NEVER_EDITED[:2], whose, "symbols", *NEVER_EDITED[3:])

    @admin.display(description="Owner")
    def belongs_to(self, key: IngestKey) -> str:
        return "-" if key.account is None else key.account.user.get_username()

    @admin.display(description="May send")
    def may_send(self, key: IngestKey) -> str:
        return key.symbols or "all symbols"

    def save_model(self, request: HttpRequest, obj: IngestKey, form: Any, change: bool) -> None:
        owner = form.cleaned_data.get("owner")
        allow_symbols(obj, obj.symbols, by=request.user.get_username(), account=owner)


# The admin's page "Market status", on which whatever is wrong comes first.
PERMISSIONS = ("instruments.view_instrument", "market.view_candle")


@require_safe
@permission_required(PERMISSIONS, raise_exception=True)
def market_status(request: HttpRequest) -> HttpResponse:
    return staff_page(request, "admin/market/status.html", "Market status", **shown(overview()))


def shown(seen: Overview) -> dict[str, Any]:
    instruments = sorted(seen.instruments, key=lambda each: (each.state != "stale", each.facts.symbol))
    feeds = [feed_row(feed, seen) for feed in seen.feeds]
    feeds.sort(key=lambda row: (row["state"]["word"] != "lost", row["name"]))
    whys = {feed.name: feed.why for feed in seen.feeds if feed.why}
    return {
        "at": moment(seen.at_ms),
        "engine": seen.engine,
        "is_running": seen.is_running,
        "engine_age": as_span(seen.engine_age_ms) if seen.engine.at_ms else "",
        "clock_off": as_span(abs(seen.engine.clock_off_ms)) if seen.engine.clock_off_ms else "",
        "is_separate": bool(bus_url()),
        "instruments": [instrument_row(each, whys) for each in instruments],
        "feeds": feeds,
        "states": Counter(each.state for each in instruments),
        "live": sum(row["state"]["word"] == "live" for row in feeds),
        "lost": [row["name"] for row in feeds if row["state"]["word"] == "lost"],
        "ticks": sum(feed.ticks for feed in seen.feeds),
        "refused": sum(sum(feed.refused.values()) for feed in seen.feeds),
    }


# The icon and colour of each state. The word itself is shown beside them.
STATES = {
    "open": ("check_circle", "good"),
    "live": ("check_circle", "good"),
    "closed": ("bedtime", "calm"),
    "silent": ("hourglass_empty", "calm"),
    "unheard": ("hourglass_empty", "calm"),
    "unknown": ("help", "calm"),
    "stale": ("error", "bad"),
    "lost": ("error", "bad"),
}


def labelled(word: str) -> dict[str, str]:
    icon, tone = STATES[word]
    return {"word": word, "icon": icon, "tone": tone}


def instrument_row(seen: InstrumentOverview, whys: Mapping[str, str]) -> dict[str, Any]:
    """`whys`: of the feeds that are lost."""
    facts, quote, status = seen.facts, seen.quote, seen.status
    row = {
        "id": facts.id,
        "symbol": facts.symbol,
        "name": facts.name,
        "state": labelled(seen.state),
        "bid": as_price(quote.bid if quote else None, facts.digits),
        "ask": as_price(quote.ask if quote else None, facts.digits),
        "doubts": seen.doubts,
        "age": as_span(seen.age_ms),
        "quoted_at": moment(quote.time_ms) if quote else None,
        "day": day_row(seen),
        "source": NONE,
        "delta": NONE,
    }
    if status is not None:
        row |= {
            "source": status.feed,
            "whys": [f"{feed}: {whys[feed]}" for feed in status.feeds if feed in whys],
            "is_fallback": seen.is_on_fallback,
            "switched_at": moment(status.switched_ms) if status.switched_ms else None,
            "switches": status.switches,
            "ticks": status.ticks,
            "delta": as_delta(status.cumulative_delta),
            "outliers": status.outliers,
            "outlier": as_price(status.outlier_price, facts.digits),
            "outlier_at": moment(status.outlier_ms) if status.outlier_ms else None,
        }
    return row


def day_row(seen: InstrumentOverview) -> dict[str, Any] | None:
    day, digits = seen.day, seen.facts.digits
    if day is None:
        return None
    reach, shown = day.high - day.low, round(day.change_percent, 2)
    return {
        "change": as_change(day.change_percent),
        "direction": "up" if shown > 0 else "down" if shown < 0 else "flat",
        "high": as_price(day.high, digits),
        "low": as_price(day.low, digits),
        "volume": as_size(day.volume),
        # Where the last price lies between low and high, in percent.
        "place": round(100 * (day.last - day.low) / reach) if reach else 50,
    }


def feed_row(feed: FeedStatus, seen: Overview) -> dict[str, Any]:
    word = "unknown" if not seen.is_running else feed.state if feed.heard_ms or feed.why else "unheard"
    return {
        "name": feed.name,
        "state": labelled(word),
        "since": moment(feed.since_ms) if feed.since_ms else None,
        "why": feed.why,
        "age": as_span(max(0, seen.at_ms - feed.heard_ms) if feed.heard_ms else None),
        "lag": as_span(feed.lag_ms if feed.ticks else None),
        "ticks": feed.ticks,
        "serves": sum(is_of(feed.name, each.status.feed) for each in seen.instruments if each.status),
        "refused": sorted(feed.refused.items(), key=lambda counted: (-counted[1], counted[0])),
        "complaints": feed.complaints,
    }


MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def as_span(ms: int | None) -> str:
    """As every age, but to a tenth below ten seconds: 0.4 s, 12 s, 3 min, 38 h."""
    if ms is None:
        return NONE
    if ms >= 10_000:
        return age_text(ms / 1000)
    return f"{ms / 1000:.1f} s".replace("-", MINUS)


def as_price(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def as_size(value: float) -> str:
    """12, 3.5, 48.2 k, 1.3 M."""
    for unit, letter in SIZES:
        if abs(value) >= unit:
            return f"{value / unit:.1f} {letter}".replace("-", MINUS)
    return f"{value:.4g}".replace("-", MINUS)


def as_delta(value: float) -> str:
    """+1.53, −246.60, +2,204.00: a column of sizes of one day, so with the same decimals."""
    return with_sign(f"{round(value, 2) + 0.0:,.2f}".replace("-", MINUS))


def with_sign(text: str) -> str:
    """Changes are shown with their sign."""
    return text if text.startswith(MINUS) or not any(digit in text for digit in "123456789") else f"+{text}"


def as_change(percent: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{with_sign(f'{round(percent, 2) + 0.0:.2f}'.replace('-', MINUS))}%"


if TYPE_CHECKING:
    from django.contrib.admin import SimpleListFilter as DropdownFilter
else:
    from unfold.contrib.filters.admin import DropdownFilter


PRICES = ("open_price", "high_price", "low_price", "close_price")


class ChosenFilter(DropdownFilter):
    """A filter that is never off: without a choice it takes the first."""

    all_option = None

    def value(self) -> str:
        offered = [str(value) for value, _ in self.lookup_choices]
        chosen = super().value()
        return chosen if chosen in offered else offered[0]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Candle]) -> QuerySet[Candle]:
        return queryset.filter(**{str(self.parameter_name): self.value()})


class InstrumentFilter(ChosenFilter):
    title = "instrument"
    parameter_name = "instrument"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return list(Instrument.objects.order_by("symbol").values_list("pk", "symbol"))


class TimeframeFilter(ChosenFilter):
    title = "timeframe"
    parameter_name = "timeframe"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [(name, name) for name in TIMEFRAMES]


@admin.register(Candle)
class CandleAdmin(ReadOnlyAdmin[Candle]):
    list_display = ("opened_at", "symbol", "timeframe", *PRICES, "traded", "basis", "partial")
    fields = (
        "opened_at",
        "instrument",
        "timeframe",
        *PRICES,
        "highest_ask",
        "lowest_ask",
        "traded",
        "basis",
        "partial",
    )
    list_select_related = ("instrument",)
    list_filter = (InstrumentFilter, TimeframeFilter, ("opened_at", RangeDateTimeFilter))
    # With both filters on this is the unique index read backwards.
    ordering = ("-opened_at",)
    paginator = InfinitePaginator

    open_price, high_price = price_column("open"), price_column("high")
    low_price, close_price = price_column("low"), price_column("close")
    highest_ask, lowest_ask = price_column("ask_high"), price_column("ask_low")

    @admin.display(description="Volume")
    def traded(self, candle: Candle) -> str:
        return f"{candle.volume.normalize():f}"

    @admin.display(description="Symbol")
    def symbol(self, candle: Candle) -> str:
        return candle.instrument.symbol
