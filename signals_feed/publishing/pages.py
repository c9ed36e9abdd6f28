"""The settings panel's page for publishers: a form beside the live quote, and their signals."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from accounts.number_fields import DecimalNumberField
from accounts.panel import PersonRequest, post_only
from core import clock
from core.times import age_text, moment
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime as market
from signals_feed.checking import check_signals
from signals_feed.figures import NARROW, gains, in_words
from signals_feed.ledger.beginning import are_due
from signals_feed.models import LIFETIME, PERMISSION, Signal
from signals_feed.publishers.paging import read_page
from signals_feed.rules import SignalRefused, SignalTerms

from .actions import SignalNotActive, close_by_hand, current_quote, publish
from .active import active_signals
from .becoming import becoming_page
from .preview import preview


def offered() -> list[tuple[str, str]]:
    found = sorted(catalogue.offered(), key=lambda facts: facts.symbol)
    return [(facts.symbol, f"{facts.symbol} – {facts.name}") for facts in found]


FILLED_LATER = "It is filled at the next price, at least one second from now."
NO_PRICE = "This is not a price. Write it like 1.0842."


def price_input(help_text: str, label: str = "Entry", *, required: bool = True) -> forms.DecimalField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
    return DecimalNumberField(
        label=label,
        required=required,
        max_digits=18,
        decimal_places=8,
        widget=widget,
        help_text=help_text,
        error_messages={"invalid": NO_PRICE, "ambiguous": NO_PRICE},
    )


def traded(wanted: str) -> str:
    """The wanted instrument if it is offered, or else the first whose market is open."""
    found = [facts for symbol, _ in offered() if (facts := catalogue.find(symbol)) is not None]
    if any(facts.symbol == wanted for facts in found):
        return wanted
    is_open = (facts.symbol for facts in found if market.state(facts) == "open")
    return next(is_open, found[0].symbol if found else "")


class PublishForm(forms.Form):
    symbol = forms.ChoiceField(choices=offered, label="Instrument")
    direction = forms.ChoiceField(choices=Signal.Direction.choices)
    # A price that was typed is often worse than that of the moment in which the form is sent.
    entry = price_input(
        "Leave it empty for the market price at the moment you publish. Otherwise, for a buy the ask or"
        " higher, for a sell the bid or lower, and at most 1% away.",
        required=False,
    )
    stop_loss = price_input(
        "Below the entry for a buy, above it for a sell. Its distance from the price paid is 1 R.", "Stop"
    )
    take_profit = price_input("Above the entry for a buy, below it for a sell.", "Target")
    # The same form sent twice is one signal.
    token = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)


def quote_of(facts: InstrumentFacts) -> dict[str, Any]:
    """The quote beside the form. Prices are text with all their decimals."""
    quote, state = market.quote(facts.symbol), market.state(facts)
    described: dict[str, Any] = {"symbol": facts.symbol, "state": state, "why": why_not(facts, state)}
    if quote is None:
        return described
    prices = {"bid": quote.bid, "ask": quote.ask, "spread": quote.spread}
    shown = {name: f"{price:.{facts.digits}f}" for name, price in prices.items()}
    return described | shown | {"age_ms": quote.age_ms(clock.now_ms())}


def why_not(facts: InstrumentFacts, state: str) -> str:
    """Why nothing can be published or closed by hand now; empty if it can."""
    if state == "stale":
        return f"There is no fresh price of {facts.symbol}. You can publish once one arrives."
    if state != "closed":
        return ""
    now_ms = clock.now_ms()
    opens_ms = facts.hours.next_open(now_ms)
    closed = f"The market of {facts.symbol} is closed."
    if opens_ms is None:
        return f"{closed} It is not known when it opens."
    wait = in_words(-(-(opens_ms - now_ms) // 60_000) * 60)
    opens = f"{moment(opens_ms):%a %-d %b, %H:%M} UTC".replace(" ", NARROW)
    return f"{closed} It opens {opens}, in{NARROW}{wait}."


def age_words(age_ms: int) -> str:
    """In the words of the page's script."""
    return "now" if age_ms < 1000 else age_text(age_ms / 1000)


PAGE = "publish_signals"
CHART_TIMEFRAMES = ("5m", "15m", "1h", "4h")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def publish_signals(request: PersonRequest) -> HttpResponse:
    if not request.user.has_perm(PERMISSION):
        return becoming_page(request, status=403 if request.method == "POST" else 200)
    if request.method != "POST":
        return page(request, PublishForm(initial={"symbol": traded(request.GET.get("symbol", ""))}))
    form = PublishForm(request.POST)
    if form.is_valid() and publish_form(form, request.user):
        signal = form.cleaned_data
        filled = f" {FILLED_LATER}" if are_due() else ""
        messages.success(request, f"Published: {signal['direction']} {signal['symbol']}.{filled}")
        return redirect(address_of(signal["symbol"]))
    return page(request, form, status=400)


def publish_form(form: PublishForm, user: User) -> Signal | None:
    """None if it is refused; the form then shows the reason beside its field."""
    values = dict(form.cleaned_data)
    token: UUID = values.pop("token")
    try:
        return publish(SignalTerms(**values), user, current_quote(values["symbol"]), token)
    except SignalRefused as refusal:
        form.add_error(refusal.field or None, str(refusal))
        return None


@post_only
@login_required
@never_cache
def close_signal(request: PersonRequest, pk: UUID) -> HttpResponse:
    signal = get_object_or_404(Signal.objects.select_related("instrument"), pk=pk, user=request.user)
    try:
        close_by_hand(signal, by=request.user, quote=current_quote(signal.instrument.symbol))
    except (SignalRefused, SignalNotActive) as refusal:
        messages.error(request, str(refusal))
    else:
        signal.refresh_from_db()
        messages.success(request, closed_words(signal))
    return redirect(address_of(signal.instrument.symbol))


def closed_words(signal: Signal) -> str:
    which = f"{signal.direction} {signal.instrument.symbol}"
    if signal.closed_at is None:
        return f"You asked to close: {which}. It closes at the next price, at least one second from now."
    return f"Closed: {which}, {gains(signal)[0]}."


def address_of(symbol: str) -> str:
    """Of the page with the instrument that somebody is at."""
    return f"{reverse(PAGE)}?{urlencode({'symbol': symbol})}"


@require_safe
@login_required
@never_cache
def live_signals(request: PersonRequest) -> HttpResponse:
    """For the page's script: the quote of one instrument, what its terms would risk and earn, and the results
    of the person's active signals."""
    if not request.user.has_perm(PERMISSION) and not Signal.objects.filter(user=request.user).exists():
        raise PermissionDenied
    results = [{"id": str(signal.pk), **now} for signal, now in active_signals(request.user)]
    facts = catalogue.find(request.GET.get("symbol", ""))
    if facts is not None and not facts.is_offered:
        facts = None
    if facts is None:
        return JsonResponse({"quote": None, "signals": results, "preview": {}})
    computed = preview(facts, current_quote(facts.symbol), request.GET)
    return JsonResponse({"quote": quote_of(facts), "signals": results, "preview": computed})


def page(request: PersonRequest, form: PublishForm, *, status: int = 200) -> HttpResponse:
    own = Signal.objects.filter(user=request.user).for_feed().select_related("instrument")
    all_closed = own.with_status("closed")
    closed_page = read_page(request.GET.get("page", ""), all_closed.count())
    closed = list(all_closed[closed_page.first - 1 : closed_page.last])
    checks = check_signals(closed)
    facts = catalogue.find(traded(str(form["symbol"].value())))
    quote = {} if facts is None else quote_of(facts)
    context = {
        "form": form,
        "quote": quote,
        "age": age_words(quote["age_ms"]) if "age_ms" in quote else "",
        "active": active_signals(request.user),
        "filled_later": FILLED_LATER if are_due() else "",
        "closed": [(signal, checks[signal.pk]) for signal in closed],
        "closed_page": closed_page,
        "has_published": own.exists(),
        "lifetime": f"{LIFETIME.days} days",
        "timeframes": CHART_TIMEFRAMES,
    }
    return render(request, "signals/publish.html", context, status=status)
