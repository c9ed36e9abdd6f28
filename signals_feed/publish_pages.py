"""The settings panel's page for publishers: a form beside the live quote, and their signals."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from accounts.pages import PersonRequest, post_only
from instruments.catalogue import catalogue

from . import quotes
from .forms import PublishForm, traded
from .live import age_words, quote_of, result_now
from .models import Signal
from .services import PERMISSION, NotActive, Refused, Terms, close_by_hand, publish

PAGE = "publish_signals"
CLOSED_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def publish_signals(request: PersonRequest) -> HttpResponse:
    if not request.user.has_perm(PERMISSION):
        status = 403 if request.method == "POST" else 200
        return render(request, "signals/not_a_publisher.html", status=status)
    if request.method != "POST":
        return page(request, PublishForm(initial={"symbol": traded(request.GET.get("symbol", ""))}))
    form = PublishForm(request.POST)
    if form.is_valid() and publish_form(form, request.user):
        signal = form.cleaned_data
        messages.success(request, f"Published: {signal['direction']} {signal['symbol']}.")
        return redirect(PAGE)
    return page(request, form, status=400)


def publish_form(form: PublishForm, user: User) -> Signal | None:
    """None where it is refused; the reason then stands beside its field."""
    values = dict(form.cleaned_data)
    token: UUID = values.pop("token")
    try:
        return publish(Terms(**values), user, quotes.current(values["symbol"]), token)
    except Refused as refusal:
        form.add_error(refusal.field or None, str(refusal))
        return None


@post_only
@login_required
@never_cache
def close_signal(request: PersonRequest, pk: UUID) -> HttpResponse:
    signal = get_object_or_404(Signal.objects.select_related("instrument"), pk=pk, user=request.user)
    try:
        close_by_hand(signal, by=request.user, quote=quotes.current(signal.instrument.symbol))
    except (Refused, NotActive) as refusal:
        messages.error(request, str(refusal))
    else:
        signal.refresh_from_db()
        messages.success(
            request, f"Closed: {signal.direction} {signal.instrument.symbol}, {signal.pnl:+} pips."
        )
    return redirect(PAGE)


@require_safe
@login_required
@never_cache
def live_signals(request: PersonRequest) -> HttpResponse:
    """For the page's script: the quote of one instrument, and where the person's signals stand."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    facts = catalogue.find(request.GET.get("symbol", ""))
    active = Signal.objects.active().filter(user=request.user).select_related("instrument")
    results = [{"id": str(signal.pk), **result_now(signal)} for signal in active]
    return JsonResponse({"quote": None if facts is None else quote_of(facts), "signals": results})


def page(request: PersonRequest, form: PublishForm, *, status: int = 200) -> HttpResponse:
    own = Signal.objects.filter(user=request.user).for_feed().select_related("instrument")
    facts = catalogue.find(form.chosen_symbol)
    quote = {} if facts is None else quote_of(facts)
    context = {
        "form": form,
        "quote": quote,
        "age": age_words(quote["age_ms"]) if "age_ms" in quote else "",
        "active": [(signal, result_now(signal)) for signal in own.active()],
        "closed": own.with_status("closed")[:CLOSED_SHOWN],
        "has_published": own.exists(),
    }
    return render(request, "signals/publish.html", context, status=status)
