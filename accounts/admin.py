"""The back office of accounts: customers, staff and their roles, control events, tiers and the requests for
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

# What these register is unregistered below.
import allauth.account.admin
import allauth.mfa.admin
import allauth.usersessions.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.admin.utils import display_for_value
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldBooleanSwitchWidget

from accounts.deletion import end_sessions
from accounts.limits.tiers import (
    TierRequestRefused,
    accept_request,
    change_tier,
    decline_request,
    save_tier,
    save_user_access,
)
from accounts.login.factors import FACTOR_NAMES, publish_factor
from accounts.models import TIER_LIMITS, Account, AiUsage, Tier, TierRequest, User
from accounts.panel.usage import Chart, bars, days_of, minutes_of, rows_of
from accounts.rights import READY_ROLE, PowerRefused, publishing_right
from accounts.signals import powers_given, role_changed
from accounts.usage import near_limits
from core.events.kinds import EventKind, word_for
from core.events.outbox import ControlEvent

from .back_office.key_pages import ApiKeyAdmin, MailsOwner
from .back_office.request_pages import RequestAdmin
from .back_office.staff_pages import ITSELF, ReadOnlyAdmin, StaffAdmin, button
from .models import ApiKey


# The accounts of customers: their tier, whether they may publish, and what they use now.
class NearLimitsFilter(admin.SimpleListFilter):
    title = "limits"
    parameter_name = "limits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("near", "Near or at their limits")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Account]) -> QuerySet[Account]:
        return queryset.filter(pk__in=near_limits(timezone.now())) if self.value() == "near" else queryset


class VisitorFilter(admin.SimpleListFilter):
    """The demo creates an account for every browser, which would bury those of customers."""

    title = "visitors"
    parameter_name = "visitors"
    lookup = "visitor_from"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("only", "Visitors of the demo"), ("with", "Both")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": "Customers"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "with":
            return queryset
        visitors = {f"{self.lookup}__gt": ""}
        return queryset.filter(**visitors) if self.value() == "only" else queryset.exclude(**visitors)


class VisitingUserFilter(VisitorFilter):
    lookup = "account__visitor_from"


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    may_publish = forms.BooleanField(
        label="May publish signals",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Under their own name. Each signal is public and final.",
    )

    class Meta:
        model = Account
        fields = ("user", "tier")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk and "may_publish" in self.fields:
            self.initial["may_publish"] = publishing_right.is_held_by(self.instance.user)


@admin.register(Account)
class AccountAdmin(MailsOwner, StaffAdmin[Account]):
    owner = "user"
    decides_about_owner = True
    never = ("delete",)
    """Deactivate the user instead: what an account did stays on record."""
    set_once = ("user",)
    form = AccountForm
    change_form_after_template = "admin/accounts/usage.html"
    list_display = ("user", "tier", "is_active", "is_demo", "created_at")
    list_filter = (VisitorFilter, "tier", "user__is_active", "is_demo", NearLimitsFilter)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith", "user__email__startswith")
    search_help_text = "Username or email starts with…"
    autocomplete_fields = ("user",)
    fields = ("user", "tier", "is_active", "may_publish", "keys", "is_demo", "created_at")
    readonly_fields = ("is_active", "keys", "is_demo", "created_at")

    @admin.display(boolean=True, description="active", ordering="user__is_active")
    def is_active(self, account: Account) -> bool:
        """A locked person asks support first. The page of the user locks and unlocks."""
        return account.pk is None or account.user.is_active

    @admin.display(description="API keys")
    def keys(self, account: Account) -> str:
        if account.pk is None:
            return "-"
        address = f"{reverse('admin:accounts_apikey_changelist')}?account__id__exact={account.pk}"
        return format_html('<a href="{}" class="text-primary-600">Keys of this account</a>', address)

    @admin.display(boolean=True, description="May publish signals")
    def may_publish(self, account: Account) -> bool:
        """For those who may not change it."""
        return publishing_right.is_held_by(account.user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Account]:
        # The name of an account is that of its user, in autocompletion too.
        return super().get_queryset(request).select_related("user", "tier")

    def save_model(self, request: HttpRequest, obj: Account, form: ModelForm[Account], change: bool) -> None:
        by, is_switched = request.user.get_username(), "may_publish" in form.changed_data
        # All rows before the first event, because a transaction that writes events makes others wait.
        if is_switched:
            publishing_right.set_for(obj.user, is_held=form.cleaned_data["may_publish"])
        if not change:
            obj.save()
        elif "tier" in form.changed_data:
            change_tier(obj, obj.tier, by=by)
        if is_switched:
            publishing_right.announce(obj.user, is_held=form.cleaned_data["may_publish"], by=by)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        account = context.get("original")
        used = used_by(account, timezone.now()) if account else {}
        return super().render_change_form(request, {**context, **used}, *args, **options)


def used_by(account: Account, now: datetime) -> dict[str, Any]:
    """Its usage on the page: today with the tier's limits, the last 30 days, and open streams."""
    days = days_of(account, now)
    today, tier = days[-1], account.tier
    streams = rows_of(account)
    busiest = max(minute.requests for minute in minutes_of(account, now))
    return {
        "used_today": (
            ("Requests today", today.counts.requests, None),
            ("Requests in the busiest minute today", busiest, tier.requests_per_minute),
            ("Streams opened today", today.counts.streams, None),
            ("Open streams (API keys)", sum(not each.is_of_page for each in streams), tier.streams),
            ("AI calls today", today.ai_calls, tier.ai_calls_per_day),
        ),
        "charts": [
            Chart("Requests in 30 days", "day", bars([day.counts.requests for day in days])),
            Chart("Streams opened in 30 days", "day", bars([day.counts.streams for day in days])),
            Chart("AI calls in 30 days", "day", bars([day.ai_calls for day in days])),
        ],
        "open_streams": streams,
    }


# What happened and who did it, read-only. Acts of the service have no name; of the others the actor is
# unknown.
OF_THE_SERVICE = frozenset(
    (
        *(EventKind.SIGNAL_CLOSED, EventKind.CANDLES_IMPORTED, EventKind.INSTRUMENTS_CHANGED),
        *(EventKind.NEWS_PUBLISHED, EventKind.DATABASE_RESTORED, EventKind.SIGNALS_REMOVED),
    )
)


# Reserved: under one of these names the service cancels the signals of a series that ends.
SERVICE_NAMES = frozenset(("market", "system", "tickwire"))


def in_words(facts: dict[str, Any], account: str) -> str:
    """account ada, opened at 27 Nov 2026, 12:00:37 UTC, path /ws/market"""
    shown = facts | ({"account": account} if account and "account" in facts else {})
    # By name, because databases order them differently.
    named = sorted((name.replace("_", " "), fact_text(name, value)) for name, value in shown.items())
    return ", ".join(f"{name} {text}" for name, text in named)


def fact_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_at") and isinstance(value, int | float):
        return f"{datetime.fromtimestamp(value, UTC):%-d %b %Y, %H:%M:%S} UTC"
    return "none" if value in (None, "") else word_for(name, str(value))


@admin.register(ControlEvent)
class ControlEventAdmin(ReadOnlyAdmin[ControlEvent]):
    list_display = fields = ("position", "kind", "actor", "what", "at")
    ordering = ("-position",)
    paginator = InfinitePaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[ControlEvent]:
        account = Account.objects.filter(pk=OuterRef("account_id")).values("user__username")[:1]
        return super().get_queryset(request).annotate(account_name=Subquery(account))

    @admin.display(description="By")
    def actor(self, event: ControlEvent) -> str:
        if event.by in SERVICE_NAMES:
            return "the service"
        return event.by or ("the service" if event.kind in OF_THE_SERVICE else "not recorded")

    @admin.display(description="Facts")
    def what(self, event: Any) -> str:
        return in_words(event.facts, event.account_name or "") or "-"

    @admin.display(description="Time")
    def at(self, event: ControlEvent) -> str:
        return display_for_value(event.created_at, "-")


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin[LogEntry]):
    """The log of everything that staff do on these pages."""

    owner = "user"
    called = ("staff action", "staff actions")
    list_display = fields = ("at", "actor", "kind", "name", "message")
    list_select_related = ("user", "content_type")
    # By key, which is the order of writing: the time has no index.
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "Username starts with…"
    paginator = InfinitePaginator

    @admin.display(description="Time")
    def at(self, entry: LogEntry) -> str:
        return display_for_value(entry.action_time, "-")

    @admin.display(description="By")
    def actor(self, entry: LogEntry) -> str:
        return entry.user.get_username()

    @admin.display(description="Kind")
    def kind(self, entry: LogEntry) -> str:
        return capfirst(entry.content_type.name) if entry.content_type else "-"

    @admin.display(description="Object")
    def name(self, entry: LogEntry) -> str:
        return entry.object_repr

    @admin.display(description="What")
    def message(self, entry: LogEntry) -> str:
        bare = {ADDITION: "Added.", DELETION: "Deleted."}.get(entry.action_flag, "-")
        return entry.get_change_message() or bare


@admin.register(AiUsage)
class AiUsageAdmin(ReadOnlyAdmin[AiUsage]):
    owner = "account__user"
    list_display = ("account", "day", "used")
    list_select_related = ("account__user",)
    ordering = ("-pk",)
    search_fields = ("account__user__username__startswith",)
    search_help_text = "Username starts with…"


# Tiers, and requests for another. A change reaches open sockets through control events.
@admin.register(Tier)
class TierAdmin(StaffAdmin[Tier]):
    list_display = ("name", "price", *TIER_LIMITS, "rank")
    fields = ("name", "price", *TIER_LIMITS, "rank")
    search_fields = ("name",)
    sortable_by = None
    # Accounts, commands and rate-limit headers refer to a tier by its name.
    set_once = ("name",)
    never = ("delete",)

    def save_model(self, request: HttpRequest, obj: Tier, form: ModelForm[Tier], change: bool) -> None:
        save_tier(obj, by=request.user.get_username())


@admin.register(TierRequest)
class TierRequestAdmin(RequestAdmin[TierRequest]):
    decline_request = staticmethod(decline_request)
    refusal = TierRequestRefused
    mail, page = "settings/email/tier", "tier"
    list_display = ("account", "current", "wanted", "why", "state_now", "asked_at", "decided_by")
    list_select_related = ("account__user", "account__tier", "wanted")
    list_filter = ("state", "wanted")
    fields = readonly_fields = (
        *("account", "current", "wanted", "why", "asked_at"),
        *("state_now", "decided_at", "decided_by", "answer"),
    )

    @admin.display(description="Tier now")
    def current(self, request: TierRequest) -> str:
        return str(request.account.tier)

    @button("Accept", permission="change", icon="check")
    def accept(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        if (closed := self.already(request, found)) is not None:
            return closed
        if "answered" in request.POST:
            return self.decide(request, found, accept_request, f"Accepted: {found.wanted}.")
        text = (
            f"The tier changes from {found.account.tier} to {found.wanted} within two seconds, on open"
            f" streams too. The reason given: “{found.why}”"
        )
        return self.ask(
            request,
            forms.Form(),
            title=f"Accept the request of {found.account} for {found.wanted}",
            text=text,
            submit="Accept",
        )

    def decider(self, request: HttpRequest) -> str:
        return request.user.get_username()

    def log_decision(self, request: HttpRequest, found: TierRequest, done: str) -> None:
        super().log_decision(request, found, done)
        if found.state == TierRequest.State.ACCEPTED:
            self.log_change(request, found.account, f"Tier {found.wanted}, as asked for.")  # type: ignore[arg-type]


# Users: created, locked and unlocked; only superusers grant powers. allauth's tables appear here without
# their secrets.
POWERS = ("is_staff", "is_superuser", "groups")
RAW_POWERS = "user_permissions"
admin.site.unregister(Group)


class UserForm(UserChangeForm):  # type: ignore[misc]
    may_publish = forms.BooleanField(
        label="May publish signals",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Under their own name. Each signal is public and final.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "may_publish" in self.fields:
            self.initial["may_publish"] = publishing_right.is_held_by(self.instance)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.keys() >= {*POWERS, RAW_POWERS}:
            powers = {name: given[name] for name in POWERS}
            try:
                powers_given.send(User, user=self.instance, **powers, permissions=given[RAW_POWERS])
            except PowerRefused as error:
                self.add_error(None, str(error))
        return given


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance.pk is not None:
            try:
                role_changed.send(Group, group=self.instance, permissions=given.get("permissions", ()))
            except PowerRefused as error:
                self.add_error(None, str(error))
        return given


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, StaffAdmin[Group]):
    form = RoleForm
    called = ("role", "roles")
    sortable_by = None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # People who may edit a group's permissions could give themselves any, and `migrate` would undo a
        # change to a ready-made role.
        group = self.get_object(request, str(obj)) if isinstance(obj, str | int) else obj
        is_ready = group is not None and group.name.startswith(READY_ROLE)
        return bool(request.user.is_superuser) and not is_ready

    has_add_permission = has_delete_permission = has_change_permission


@admin.register(User)
class UserAdmin(MailsOwner, DjangoUserAdmin, StaffAdmin[User]):  # type: ignore[type-arg]
    owner = ITSELF
    never = ("delete",)
    """Deactivate instead: what a user did stays on record."""
    form = UserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = (VisitingUserFilter, "is_active", "is_staff", "is_superuser")
    ordering = ("-pk",)
    search_fields = ("username__startswith", "email__startswith")
    search_help_text = "Username or email starts with…"
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    readonly_fields = ("password_state", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "email", "is_active", "password_state", "last_login", "date_joined")}),
        ("What they may do", {"fields": ("groups", "may_publish", "is_staff", "is_superuser")}),
    )
    # For superusers.
    raw_powers = ("Single permissions", {"fields": (RAW_POWERS,), "classes": ("collapse",)})
    add_fieldsets = ((None, {"fields": ("username", "password1", "password2")}),)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> User | None:
        user: User | None = super().get_object(request, object_id, from_field)
        if user is not None:
            user.changed_by = request.user.get_username()
        return user

    @admin.display(description="Password")
    def password_state(self, user: User) -> str:
        state = "Set." if user.has_usable_password() else "None: this person cannot log in with one."
        return format_html('{} <a href="../password/" class="text-primary-600">Change it</a>', state)

    @admin.display(boolean=True, description="May publish signals")
    def may_publish(self, user: User) -> bool:
        """For those who may not change it."""
        return publishing_right.is_held_by(user)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = list(super().get_fieldsets(request, obj))
        if obj and not self.has_change_permission(request, obj):
            shown = [(title, {"fields": without_password(part["fields"])}) for title, part in shown]
        return [*shown, self.raw_powers] if obj and request.user.is_superuser else shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fixed = () if request.user.is_superuser else (*POWERS, RAW_POWERS, "may_publish")
        return (*self.readonly_fields, *fixed)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == RAW_POWERS:
            # That permission has a switch of its own.
            options["queryset"] = Permission.objects.exclude(publishing_right.is_it()).select_related(
                "content_type"
            )
        return super().formfield_for_manytomany(db_field, request, **options)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        # After the single permissions, which the form overwrites.
        user, by, is_held = form.instance, request.user.get_username(), form.cleaned_data.get("may_publish")
        if is_held is not None:
            publishing_right.set_for(user, is_held=is_held)
        # All rows before the first event, because a transaction that writes events makes others wait.
        if "is_active" in form.changed_data:
            account = Account.objects.filter(user=user).first()
            if not user.is_active:
                end_sessions(user)
            if account is not None:
                save_user_access(account, by=by)
        if "may_publish" in form.changed_data:
            publishing_right.announce(user, is_held=bool(is_held), by=by)


def without_password(fields: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(field for field in fields if field != "password_state")


admin.site.unregister(EmailAddress)
admin.site.unregister(Authenticator)

# People end their own sessions, in the settings panel.
admin.site.unregister(UserSession)


@admin.register(EmailAddress)
class EmailAddressAdmin(MailsOwner, StaffAdmin[Model]):
    owner = "user"
    list_display = ("email", "user", "primary", "verified")
    list_select_related = ("user",)
    list_filter = ("verified",)
    ordering = ("-pk",)
    search_fields = ("email__startswith", "user__username__startswith")
    search_help_text = "Email or username starts with…"
    autocomplete_fields = ("user",)


class FactorFilter(admin.SimpleListFilter):
    title, parameter_name = "type", "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*FACTOR_NAMES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(type=self.value()) if self.value() in FACTOR_NAMES else queryset


@admin.register(Authenticator)
class AuthenticatorAdmin(MailsOwner, ReadOnlyAdmin[Model]):
    """Second factors. Deleting one lets in a person who lost it. Its secret is never shown."""

    owner = "user"
    list_display = fields = ("user", "kind", "created_at", "last_used_at")
    list_select_related = ("user",)
    list_filter = (FactorFilter,)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "Username starts with…"

    @admin.display(description="Type")
    def kind(self, factor: Any) -> str:
        return FACTOR_NAMES[factor.type]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def log_deletions(self, request: HttpRequest, rows: Any) -> Any:
        for factor in rows:
            publish_factor(EventKind.FACTOR_REMOVED, factor, by=request.user.get_username())
        return super().log_deletions(request, rows)


# Not in the module that defines it, because that module also creates the site.
admin.site.register(ApiKey, ApiKeyAdmin)
