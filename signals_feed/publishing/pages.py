"""The settings panel's pages for publishers: how one becomes a publisher, a form beside the live quote with
its preview, and their signals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
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

from accounts.form_fields import DecimalNumberField, OneLineField, without_separators
from accounts.models import LONGEST_REASON, Account, User
from accounts.panel import PersonRequest, address_for_answers, post_only
from accounts.rights import MAY_PUBLISH
from core import clock
from core.times import age_text, moment
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime as market
from signals_feed.exits import Result, paid_entry, result
from signals_feed.figures import NARROW, gain_text, gains, in_r, in_words, signed
from signals_feed.figures import price as price_text
from signals_feed.ledger.names import looks_like_another
from signals_feed.ledger.new_rules import are_due
from signals_feed.models import LIFETIME, Signal
from signals_feed.publishers.lookup import read_page
from signals_feed.publishers.requests import (
    PublisherRequest,
    PublisherRequestRefused,
    ask_to_publish,
    withdraw_request,
    withdrawn_at,
)
from signals_feed.result_checks import check_signals
from signals_feed.rules import FARTHEST, Quoted, SignalRefused, SignalTerms, check, faults_of

from .actions import SignalNotActive, active_signals, close_by_hand, current_quote, publish

# What a form would publish, computed as the service will compute it: before it is sent.
PRICE = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
PRICES = ("entry", "stop_loss", "take_profit")


def preview(facts: InstrumentFacts, quote: Quoted | None, typed: Mapping[str, str]) -> dict[str, Any]:
    """The faults of the terms so far, by field; once all prices are right, their risk and reward. Without an
    entry, that is the market's."""
    direction = typed.get("direction", "")
    texts = {name: text for name in PRICES if (text := typed.get(name, "").strip())}
    if quote is None or direction not in ("buy", "sell") or not texts:
        return {}
    prices = {name: price for name, text in texts.items() if (price := read_price(text)) is not None}
    market = quote.ask if direction == "buy" else quote.bid
    example = f"{market:.{facts.digits}f}"
    is_at_market = "entry" not in texts
    if is_at_market:
        prices = {"entry": market, **prices}
    faults = {name: f"This is not a price. Write it like {example}." for name in texts if name not in prices}
    faults |= {each.field: str(each) for each in faults_of(direction, prices, quote, facts.digits)}
    if faults or len(prices) < len(PRICES):
        return {"faults": faults}
    found = computed(facts, quote, SignalTerms(facts.symbol, direction, **prices))
    return {**found, "is_at_market": True} if is_at_market else found


def computed(facts: InstrumentFacts, quote: Quoted, terms: SignalTerms) -> dict[str, Any]:
    try:
        entry, tradable = check(terms, quote, facts.digits)
    except SignalRefused as refusal:
        return {"faults": {refusal.field: str(refusal)}}
    paid = paid_entry(terms.direction, entry, tradable)
    ends = {"risk": terms.stop_loss, "reward": terms.take_profit}
    prices = {"entry": entry, "stop_loss": terms.stop_loss, "take_profit": terms.take_profit, "paid": paid}
    results = {name: result_at(facts, terms, entry, tradable, price) for name, price in ends.items()}
    return {
        "faults": {},
        **{name: price_text(price, facts.digits) for name, price in prices.items()},
        **{name: outcome(facts, earned) for name, earned in results.items()},
        "ratio": f"1 : {results['reward'].pnl_r:,.2f}",
    }


def result_at(
    facts: InstrumentFacts, terms: SignalTerms, entry: Decimal, tradable: Decimal, price: Decimal
) -> Result:
    """Of a close at that price."""
    return result(terms.direction, entry, terms.stop_loss, tradable, price, Decimal(str(facts.pip_size)))


def outcome(facts: InstrumentFacts, earned: Result) -> dict[str, str]:
    gain, percent = gain_text(facts, earned.pnl, earned.pnl_percent), f"{signed(earned.pnl_percent)}%"
    return {"r": in_r(earned.pnl_r), "gain": gain, "percent": "" if percent == gain else percent}


def read_price(text: str) -> Decimal | None:
    """Written as prices are: not as 1e0, nor as inf."""
    plain = without_separators(text)
    return Decimal(plain) if PRICE.fullmatch(plain) else None


# The settings panel's page for users who do not publish yet: their requests and the answers.
PAGE = "publish_signals"
LIFETIME_TEXT = f"{LIFETIME.days} days"
SHOWN = 10


class AskToPublishForm(forms.Form):
    why = OneLineField(
        LONGEST_REASON,
        label="What you would publish",
        help_text="A sentence on the markets and the method.",
        error_messages={"required": "Describe in a sentence what you would publish."},
    )


def becoming_page(
    request: PersonRequest, form: AskToPublishForm | None = None, *, status: int = 200
) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    asked = list(PublisherRequest.objects.filter(account=account)[:SHOWN])
    waiting = next((each for each in asked if each.state == each.State.OPEN), None)
    context = {
        "withdrawn_at": withdrawn_at(account),
        "looks_like_another": looks_like_another(request.user),
        "has_published": Signal.objects.filter(user=request.user).exists(),
        "active": active_signals(request.user),
        "waiting": waiting,
        "decided": [each for each in asked if each is not waiting],
        "form": form or AskToPublishForm(),
        "answers_to": address_for_answers(request.user),
        "lifetime": LIFETIME_TEXT,
    }
    return render(request, "signals/not_a_publisher.html", context, status=status)


@post_only
@login_required
@never_cache
def ask(request: PersonRequest) -> HttpResponse:
    form = AskToPublishForm(request.POST)
    if not form.is_valid():
        return becoming_page(request, form, status=400)
    try:
        ask_to_publish(Account.objects.for_user(request.user), **form.cleaned_data, by=request.user)
    except PublisherRequestRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, "Your request has been sent to the staff. This page shows their answer.")
    return redirect(PAGE)


@post_only
@login_required
@never_cache
def withdraw(request: PersonRequest, pk: int) -> HttpResponse:
    own = PublisherRequest.objects.filter(account=Account.objects.for_user(request.user))
    try:
        withdraw_request(get_object_or_404(own, pk=pk), by=request.user)
        messages.success(request, "Your request has been withdrawn.")
    except PublisherRequestRefused:
        messages.info(request, "It has already been decided; see below.")
    return redirect(PAGE)


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
        f" higher, for a sell the bid or lower, and at most {FARTHEST:.0%} away.",
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


CHART_TIMEFRAMES = ("5m", "15m", "1h", "4h")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def publish_signals(request: PersonRequest) -> HttpResponse:
    if not request.user.has_perm(MAY_PUBLISH):
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
    """Of the page with the instrument in view."""
    return f"{reverse(PAGE)}?{urlencode({'symbol': symbol})}"


@require_safe
@login_required
@never_cache
def live_signals(request: PersonRequest) -> HttpResponse:
    """For the page's script: the quote of one instrument, what its terms would risk and earn, and the results
    of the person's active signals."""
    if not request.user.has_perm(MAY_PUBLISH) and not Signal.objects.filter(user=request.user).exists():
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
        "lifetime": LIFETIME_TEXT,
        "timeframes": CHART_TIMEFRAMES,
    }
    return render(request, "signals/publish.html", context, status=status)
