"""Keys of all kinds in the back office: issued and shown once, revoked and never deleted; API keys are rolled
as well. Beside each stands its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import WholeNumberField, refuse_unprintable
from accounts.keys.issuing import (
    MAX_OVERLAP_HOURS,
    KeyNotActive,
    TooManyKeys,
    issue_key,
    revoke_key,
    roll_key,
)
from accounts.login.mails import mail_staff_act
from accounts.models import Account, ApiKey, Key
from accounts.panel.keys import IssueKeyForm
from accounts.rights import PowerRefused

from .staff_pages import NO_OWNER, StaffAdmin, button, label, owner_of, staff_page


# Pages of keys and factors: their owner gets a mail about each act of staff.
class MailsOwner:
    """Mails what is logged. Comes before the kind of page among the bases."""

    owner: ClassVar[str | None]

    def log_addition(self, request: HttpRequest, row: Model, message: Any) -> LogEntry:
        return self._mailed(request, row, super().log_addition(request, row, message))  # type: ignore[misc]

    def log_change(self, request: HttpRequest, row: Model, message: Any) -> LogEntry:
        return self._mailed(request, row, super().log_change(request, row, message))  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, rows: Iterable[Model]) -> Any:
        for row in rows:
            self.tell(request, row, "Deleted.")
        return super().log_deletions(request, rows)  # type: ignore[misc]

    def _mailed(self, request: HttpRequest, row: Model, entry: LogEntry) -> LogEntry:
        self.tell(request, row, entry.get_change_message())
        return entry

    def tell(self, request: HttpRequest, row: Model, done: str) -> None:
        person = owner_of(row, self.owner or NO_OWNER)
        if person is None or person == request.user:
            return
        what = f"{capfirst(row._meta.verbose_name)} {row}: {done}"
        transaction.on_commit(partial(mail_staff_act, request, person, what))


K = TypeVar("K", bound=Key)
ENDS = "It stops working within two seconds, on open streams too. This cannot be undone."


class KeyAdmin(StaffAdmin[K]):
    """A secret appears only in the answer that created it."""

    issue_form: ClassVar[type[forms.Form]]
    issue_one: ClassVar[Callable[..., tuple[Any, str]]]
    revoke_one: ClassVar[Callable[..., bool]]
    useful: ClassVar[dict[str, tuple[str, ...]]] = {"active": ("revoke",)}
    """The buttons of a key, by its state."""
    never = ("delete",)
    """Keys are revoked: deleting one would end it without an event or a mail."""
    ordering = ("-pk",)
    actions = ("revoke_chosen",)
    actions_detail: ClassVar[tuple[str, ...]] = ("revoke",)

    @label("State", active="success", rolled="warning", revoked="danger")
    def state(self, key: K) -> str:
        return key.state(timezone.now())

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        key = self.get_object(request, object_id)
        names = self.useful.get(self.state(key), ()) if key else ()
        offered: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]
        return [action for action in offered if action.path in names]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self.issue_form(
            request.POST if "answered" in request.POST else None, initial=request.GET.dict()
        )
        if form.is_valid():
            try:
                with transaction.atomic():
                    key, secret = self.issue_one(by=request.user.get_username(), **form.cleaned_data)
                    self.refuse_beyond_reach(request, key)
                    self.log_addition(request, key, "Issued.")
                return self.show_once(request, key, secret)
            except (TooManyKeys, PowerRefused) as error:
                form.add_error(None, str(error))
        title = f"Issue an {self.opts.verbose_name}"
        return self.ask(
            request, form, title=title, text="It is shown once, on the next page.", submit="Issue"
        )

    @button("Revoke", permission="change", icon="block", danger=True)
    def revoke(self, request: HttpRequest, key: K) -> HttpResponse:
        return self.ask_and_revoke(request, [key]) or redirect(self.address("change"), key.pk)

    @admin.action(description="Revoke", permissions=("change",))
    def revoke_chosen(self, request: HttpRequest, queryset: QuerySet[K]) -> HttpResponse | None:
        chosen = self.few_enough(request, queryset)
        return self.ask_and_revoke(request, chosen, action="revoke_chosen") if chosen else None

    def ask_and_revoke(self, request: HttpRequest, chosen: list[K], action: str = "") -> HttpResponse | None:
        if "answered" in request.POST:
            self.revoke_all(request, chosen)
            return None
        several = f"{len(chosen)} {self.opts.verbose_name_plural}"
        return self.ask(
            request,
            forms.Form(),
            title=f"Revoke {several if len(chosen) != 1 else chosen[0]}",
            text=ENDS,
            submit="Revoke",
            chosen=chosen,
            action=action,
            danger=True,
        )

    def revoke_all(self, request: HttpRequest, chosen: list[K]) -> None:
        by = request.user.get_username()
        with transaction.atomic():
            revoked = [key for key in chosen if self.revoke_one(key, by=by)]
            for key in revoked:
                self.log_change(request, key, "Revoked.")
            names = ", ".join(map(str, revoked))
        if revoked:
            self.message_user(request, f"Revoked: {names}.", messages.SUCCESS)
        if len(revoked) < len(chosen):
            self.message_user(request, "What was revoked before stays so.", messages.WARNING)

    def show_once(self, request: HttpRequest, key: K, secret: str) -> HttpResponse:
        title, list_url = f"The new {self.opts.verbose_name}", reverse(self.address("changelist"))
        own = {"opts": self.opts, "key": key, "secret": secret, "list_url": list_url}
        return staff_page(request, "admin/issued.html", title, **own)


class IssueApiKeyForm(IssueKeyForm):
    account = forms.ModelChoiceField(
        Account.objects.select_related("user"),
        widget=AutocompleteSelect(ApiKey._meta.get_field("account"), admin.site),
        help_text="Type the beginning of a username or email address.",
    )
    field_order = ("account", "name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})


class RollForm(forms.Form):
    overlap_hours = WholeNumberField(
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        label="Overlap in hours",
        help_text=f"0 to {MAX_OVERLAP_HOURS}. At 0 the old key stops now.",
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "numeric"}),
    )


class KeyStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state.title()) for state in ("active", "rolled", "expired", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        now = timezone.now()
        conditions: dict[str | None, dict[str, Any]] = {
            "active": {"revoked_at": None, "expires_at": None},
            "rolled": {"revoked_at": None, "expires_at__gt": now},
            "expired": {"revoked_at": None, "expires_at__lte": now},
            "revoked": {"revoked_at__isnull": False},
        }
        return queryset.filter(**conditions.get(self.value(), {}))


NEVER_EDITED = ("prefix", "account", "state", "created_at", "last_used_at", "expires_at", "revoked_at")


class ApiKeyAdmin(MailsOwner, KeyAdmin[ApiKey]):
    owner = "account__user"
    issue_form = IssueApiKeyForm
    issue_one = partial(issue_key, most_a_day=None)
    revoke_one = staticmethod(revoke_key)
    list_display = ("prefix", "name", "account", "state", "last_used_at", "created_at")
    list_select_related = ("account__user",)
    list_filter = (KeyStateFilter,)
    search_fields = ("prefix__startswith", "account__user__username__startswith")
    search_help_text = "Prefix or username starts with…"
    fields = ("prefix", "name", *NEVER_EDITED[1:])
    readonly_fields = NEVER_EDITED
    actions_detail: ClassVar[tuple[str, ...]] = ("roll", "revoke")
    useful: ClassVar[dict[str, tuple[str, ...]]] = {"active": ("roll", "revoke"), "rolled": ("revoke",)}

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "name":
            options["validators"] = (refuse_unprintable,)
        return super().formfield_for_dbfield(db_field, request, **options)

    @button("Roll", permission="change", icon="autorenew")
    def roll(self, request: HttpRequest, key: ApiKey) -> HttpResponse:
        form = RollForm(request.POST if "answered" in request.POST else None)
        if form.is_valid():
            try:
                with transaction.atomic():
                    by = request.user.get_username()
                    successor, secret = roll_key(key, **form.cleaned_data, by=by, most_a_day=None)
                    self.log_change(request, key, f"Rolled: {successor.prefix}… follows.")
                    self.log_addition(request, successor, f"Issued to follow {key.prefix}….")
                return self.show_once(request, successor, secret)
            except (KeyNotActive, TooManyKeys) as error:
                form.add_error(None, str(error))
        text = "A successor is issued and shown once. The old key keeps working for the overlap, then stops."
        return self.ask(request, form, title=f"Roll {key}", text=text, submit="Roll", chosen=[key])
