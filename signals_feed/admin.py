"""Signals and their ledger in the back office: staff cancel signals with a reason and publish their own."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.back_office import NO_OWNER, ReadOnlyAdmin, RequestAdmin, button, label, mail_staff_act
from accounts.form_fields import refuse_invisible
from accounts.models import User
from accounts.rights import MAY_PUBLISH
from instruments.admin import price_column
from signals_feed.api.proof import rule_text
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.proof import known_prices
from signals_feed.publishers.requests import (
    PublisherRequest,
    PublisherRequestRefused,
    accept_request,
    decline_request,
)
from signals_feed.publishing.actions import SignalNotActive, cancel
from signals_feed.publishing.pages import PublishForm, publish_form

from .figures import exact_time, gains, in_r, tick_number
from .models import Evidence, Signal

PUBLISHING_EXPLAINED = (
    "It is published under your own name, at once, and cannot be changed. You need the permission to"
    " publish signals; you cannot publish for another user."
)


class StaffPublishForm(PublishForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                field.widget = UnfoldAdminSelectWidget(choices=field.choices)
            elif isinstance(field, forms.DecimalField):
                field.widget = UnfoldAdminTextInputWidget(attrs=dict(field.widget.attrs))


CALLED = {"best": "furthest for", "worst": "furthest against"}


def evidence_of(signal: Signal, kind: str) -> SafeString:
    found = next((each for each in signal.evidence.all() if each.kind == kind), None)
    if found is None:
        return SafeString("-")
    digits = signal.instrument.digits
    known = [
        (CALLED.get(name, name.replace("_", " ")), f"{price:,.{digits}f}")
        for name, price in known_prices(found).items()
    ]
    return format_html(
        "{}, {}{}<br>{}<br>{}",
        capfirst(found.get_source_display()),
        exact_time(found.at),
        f", {tick_number(found.seq, found.epoch)}" if found.seq else "",
        format_html_join(", ", "{} {}", known),
        rule_text(signal, found),
    )


PRICE_COLUMNS = ("entry_price", "stop", "target")
CANCELLING_EXPLAINED = (
    "The signal closes at the next tradable price and its result counts, or it ends unfilled if it still"
    " waits for its fill. This cannot be undone."
)


def why_too_late(signal: Signal) -> str:
    """Empty as long as it can be cancelled."""
    given = f" The reason given: “{signal.cancel_reason}”" if signal.cancel_reason else ""
    if signal.closed_at is not None:
        how = signal.get_close_reason_display().lower()
        return f"It closed on {exact_time(signal.closed_at)} ({how}).{given}"
    return f"It is being cancelled and closes at the next tradable price.{given}" if given else ""


OWN = "Another member of staff has to cancel it. You can close your own signals on the publishing page."


class CancelForm(forms.Form):
    reason = forms.CharField(
        max_length=Signal._meta.get_field("cancel_reason").max_length,
        validators=[refuse_invisible],
        help_text="Public, and kept with the signal permanently.",
        widget=UnfoldAdminTextInputWidget,
    )


@admin.register(Signal)
class SignalAdmin(ReadOnlyAdmin[Signal]):
    # Staff may cancel all signals: that gives no access to the publisher's account.
    owner = NO_OWNER
    list_display = (*("published_at", "terms", *PRICE_COLUMNS, "state", "close_reason", "gained", "user"),)
    fields = (
        *(
            "number",
            "user",
            "instrument",
            "direction",
            *PRICE_COLUMNS,
            "tradable",
            "fill",
            "published_at",
            "expires_at",
        ),
        *("state", "cancel_reason", "close_reason", "closed", "closed_at", "outcome"),
        *("best", "worst", "shown_at_entry", "shown_at_fill", "shown_at_exit", "more"),
    )
    list_select_related = ("instrument", "user")
    list_filter = ("status", "close_reason", "direction")
    ordering = ("-published_at", "-pk")
    search_fields = ("instrument__symbol__iexact", "user__username__startswith")
    search_help_text = "A symbol, publisher or signal ID"
    actions = ("cancel_chosen",)
    actions_detail = ("cancel",)

    entry_price = price_column("entry")
    stop, target = price_column("stop_loss", "Stop"), price_column("take_profit", "Target")
    tradable, closed = price_column("tradable_price"), price_column("close_price")
    fill = price_column("fill_price", "Fill")

    @admin.display(description="Result")
    def gained(self, signal: Signal) -> str:
        return "-" if signal.pnl is None or signal.is_unfilled else gains(signal)[0]

    @admin.display(description="Result")
    def outcome(self, signal: Signal) -> str:
        if signal.is_unfilled:
            return "Unfilled"
        return "-" if signal.pnl is None else ", ".join([*gains(signal), in_r(signal.pnl_r)])

    @admin.display(description="Furthest for")
    def best(self, signal: Signal) -> str:
        return in_r(signal.best_r)

    @admin.display(description="Furthest against")
    def worst(self, signal: Signal) -> str:
        return in_r(signal.worst_r)

    @admin.display(description="Signal")
    def terms(self, signal: Signal) -> str:
        return f"{signal.get_direction_display()} {signal.instrument.symbol}"

    @admin.display(description="ID")
    def number(self, signal: Signal) -> str:
        return str(signal.pk)

    @admin.display(description="Evidence at entry")
    def shown_at_entry(self, signal: Signal) -> str:
        return evidence_of(signal, Evidence.Kind.ENTRY)

    @admin.display(description="Evidence at fill")
    def shown_at_fill(self, signal: Signal) -> str:
        return evidence_of(signal, Evidence.Kind.FILL)

    @admin.display(description="Evidence at exit")
    def shown_at_exit(self, signal: Signal) -> str:
        return evidence_of(signal, Evidence.Kind.EXIT)

    @admin.display(description="More")
    def more(self, signal: Signal) -> str:
        return format_html(
            '<a href="{}" class="text-primary-600">Scorecard of {}</a> · '
            '<a href="{}?q={}" class="text-primary-600">Its ledger entries</a>',
            reverse("publisher_page", args=[signal.user.get_username()]),
            signal.user,
            reverse("admin:signals_feed_ledgerentry_changelist"),
            signal.pk,
        )

    @label("Status", active="success", cancelling="warning")
    def state(self, signal: Signal) -> str:
        waits = signal.status == Signal.Status.ACTIVE and signal.cancel_reason
        return "cancelling" if waits else signal.status

    def describe(self, chosen: Signal) -> str:
        return f"{chosen.direction} {chosen.instrument.symbol} at {self.entry_price(chosen)} by {chosen.user}"

    def has_cancel_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm("signals_feed.change_signal")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(MAY_PUBLISH)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not (self.has_add_permission(request) and isinstance(request.user, User)):
            raise PermissionDenied
        form = StaffPublishForm(request.POST if "answered" in request.POST else None)
        if form.is_valid() and (signal := publish_form(form, request.user)):
            self.log_addition(request, signal, "Published.")
            self.message_user(request, f"Published: {self.describe(signal)}.", messages.SUCCESS)
            return redirect("admin:signals_feed_signal_change", signal.pk)
        return self.ask(
            request, form, title="Publish a signal", text=PUBLISHING_EXPLAINED, submit="Publish it"
        )

    def get_fields(self, request: HttpRequest, obj: Signal | None = None) -> list[Any]:
        is_cancelled = obj is not None and obj.cancel_reason
        fields: list[Any] = list(super().get_fields(request, obj))
        return fields if is_cancelled else [each for each in fields if each != "cancel_reason"]

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        signal = self.get_object(request, object_id)
        open_ = signal is not None and signal.status == Signal.Status.ACTIVE and not signal.cancel_reason
        return super().get_actions_detail(request, object_id) if open_ else []  # type: ignore[misc]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Signal], search_term: str
    ) -> tuple[QuerySet[Signal], bool]:
        try:
            return queryset.filter(pk=uuid.UUID(search_term)), False
        except ValueError:
            return super().get_search_results(request, queryset, search_term)

    @button("Cancel this signal", permission="cancel", icon="cancel", danger=True)
    def cancel(self, request: HttpRequest, signal: Signal) -> HttpResponse:
        if (over := why_too_late(signal)) and "answered" not in request.POST:
            title = "This signal can no longer be cancelled"
            return self.ask(request, forms.Form(), title=title, text=over, submit="", chosen=[signal])
        return self.ask_and_cancel(request, [signal]) or redirect(
            "admin:signals_feed_signal_change", signal.pk
        )

    @admin.action(description="Cancel with a reason", permissions=("cancel",))
    def cancel_chosen(self, request: HttpRequest, queryset: QuerySet[Signal]) -> HttpResponse | None:
        chosen = self.few_enough(request, queryset.select_related("instrument", "user")) or []
        if "answered" not in request.POST:
            chosen = self.still_open(request, chosen)
        return self.ask_and_cancel(request, chosen, action="cancel_chosen") if chosen else None

    def still_open(self, request: HttpRequest, chosen: list[Signal]) -> list[Signal]:
        """Without those that are over, which are named."""
        for signal in chosen:
            if over := why_too_late(signal):
                self.message_user(request, f"{self.describe(signal)}: {over}", messages.WARNING)
        return [signal for signal in chosen if not why_too_late(signal)]

    def ask_and_cancel(
        self, request: HttpRequest, chosen: list[Signal], action: str = ""
    ) -> HttpResponse | None:
        form = CancelForm(request.POST if "answered" in request.POST else None)
        if form.is_valid():
            for signal in chosen:
                self.cancel_one(request, signal, form.cleaned_data["reason"])
            return None
        title = "Cancel this signal" if len(chosen) == 1 else f"Cancel {len(chosen)} signals"
        return self.ask(
            request,
            form,
            title=title,
            text=CANCELLING_EXPLAINED,
            submit="Cancel it" if len(chosen) == 1 else "Cancel them",
            chosen=chosen,
            action=action,
            danger=True,
        )

    def cancel_one(self, request: HttpRequest, signal: Signal, reason: str) -> None:
        if signal.user == request.user:
            self.message_user(request, f"{self.describe(signal)}: {OWN}", messages.ERROR)
            return
        try:
            with transaction.atomic():
                cancel(signal, reason=reason, by=request.user.get_username())
                self.log_change(request, signal, f"Cancelled: {reason}")
        except SignalNotActive as error:
            self.message_user(request, f"{self.describe(signal)}: {error}", messages.ERROR)
        else:
            mail_staff_act(request, signal.user, f"Your signal {signal} was cancelled: {reason}")
            self.message_user(request, f"Cancelled: {self.describe(signal)}.", messages.SUCCESS)


@admin.register(PublisherRequest)
class PublisherRequestAdmin(RequestAdmin[PublisherRequest]):
    decline_request = staticmethod(decline_request)
    refusal = PublisherRequestRefused
    mail, page = "signals/email/publishing", "publish_signals"
    list_display = ("account", "why", "state_now", "asked_at", "decided_by")
    list_select_related = ("account__user", "decided_by")
    list_filter = ("state",)
    fields = readonly_fields = (
        *("account", "why", "asked_at", "state_now", "decided_at", "decided_by", "answer"),
    )

    @button("Accept", permission="change", icon="check")
    def accept(self, request: HttpRequest, found: PublisherRequest) -> HttpResponse:
        if (closed := self.already(request, found)) is not None:
            return closed
        if "answered" in request.POST:
            return self.decide(request, found, accept_request, "Accepted.")
        text = f"{found.account} may publish signals as soon as you accept. The reason given: “{found.why}”"
        return self.ask(
            request, forms.Form(), title=f"Let {found.account} publish", text=text, submit="Accept"
        )


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin[LedgerEntry]):
    list_display = ("position", "kind", "signal", "hash")
    fields = ("position", "kind", "signal", "payload", "previous", "hash")
    list_filter = ("kind",)
    ordering = ("-position",)
    paginator = InfinitePaginator
    search_fields = ("signal",)
    search_help_text = "A complete signal ID"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LedgerEntry], search_term: str
    ) -> tuple[QuerySet[LedgerEntry], bool]:
        try:
            return queryset.filter(signal=uuid.UUID(search_term)), False
        except ValueError:
            return queryset.none() if search_term else queryset, False
