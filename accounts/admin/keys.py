"""API keys: issued, rolled and revoked by staff. A secret is only ever in the answer that made it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts.back_office.pages import StaffAdmin, actor, asked, button, label
from accounts.models import ApiKey
from accounts.services import NotActive, TooManyKeys, issue_key, revoke_key, roll_key

from .key_forms import IssueForm, KeyStateFilter, RollForm

NEVER_EDITED = ("prefix", "account", "state", "created_at", "last_used_at", "expires_at", "revoked_at")
ENDS = "It stops working within two seconds, on open streams too. This cannot be undone."


@admin.register(ApiKey)
class ApiKeyAdmin(StaffAdmin[ApiKey]):
    list_display = ("prefix", "name", "account", "state", "last_used_at", "created_at")
    list_select_related = ("account__user",)
    list_filter = (KeyStateFilter,)
    ordering = ("-pk",)
    sortable_by = ()
    search_fields = ("prefix__startswith", "account__user__username__startswith")
    search_help_text = "The beginning of a prefix or of a username."
    fields = ("prefix", "name", *NEVER_EDITED[1:])
    readonly_fields = NEVER_EDITED
    actions = ("revoke_chosen",)
    actions_detail = ("roll", "revoke")

    @label("State", active="success", rolled="warning", revoked="danger")
    def state(self, key: ApiKey) -> str:
        return key.state(timezone.now())

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Deleting would take a key away without telling anybody: revoke it."""
        return False

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        key = self.get_object(request, object_id)
        useful = {"active": ("roll", "revoke"), "rolled": ("revoke",)}
        names = useful.get(key.state(timezone.now()), ()) if key else ()
        offered: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]
        return [action for action in offered if action.path in names]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = IssueForm(request.POST if asked(request) else None, initial=request.GET.dict())
        if form.is_valid():
            try:
                with transaction.atomic():
                    key, secret = issue_key(**form.cleaned_data, by=actor(request))
                    self.log_addition(request, key, "Issued.")
                return self.show_once(request, key, secret)
            except TooManyKeys as error:
                form.add_error(None, str(error))
        return self.ask(
            request, form, title="Issue an API key", text="The next page shows it, once.", submit="Issue"
        )

    @button("Roll", permission="change", icon="autorenew")
    def roll(self, request: HttpRequest, key: ApiKey) -> HttpResponse:
        form = RollForm(request.POST if asked(request) else None)
        if form.is_valid():
            try:
                with transaction.atomic():
                    successor, secret = roll_key(key, **form.cleaned_data, by=actor(request))
                    self.log_change(request, key, f"Rolled: {successor.prefix}… follows.")
                    self.log_addition(request, successor, f"Issued to follow {key.prefix}….")
                return self.show_once(request, successor, secret)
            except (NotActive, TooManyKeys) as error:
                form.add_error(None, str(error))
        text = "A successor is issued and shown once. The old key works for the overlap and then no more."
        return self.ask(request, form, title=f"Roll {key}", text=text, submit="Roll", chosen=[key])

    @button("Revoke", permission="change", icon="block", danger=True)
    def revoke(self, request: HttpRequest, key: ApiKey) -> HttpResponse:
        if asked(request):
            self.revoke_all(request, [key])
            return redirect("admin:accounts_apikey_change", key.pk)
        return self.ask(
            request,
            forms.Form(),
            title=f"Revoke {key}",
            text=ENDS,
            submit="Revoke",
            chosen=[key],
            danger=True,
        )

    @admin.action(description="Revoke", permissions=("change",))
    def revoke_chosen(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        chosen = self.few_enough(request, queryset)
        if not chosen:
            return None
        if asked(request):
            self.revoke_all(request, chosen)
            return None
        title = f"Revoke {len(chosen)} API keys" if len(chosen) != 1 else f"Revoke {chosen[0]}"
        return self.ask(
            request,
            forms.Form(),
            title=title,
            text=ENDS,
            submit="Revoke",
            chosen=chosen,
            action="revoke_chosen",
            danger=True,
        )

    def revoke_all(self, request: HttpRequest, chosen: list[ApiKey]) -> None:
        with transaction.atomic():
            revoked = [key for key in chosen if revoke_key(key, by=actor(request))]
            for key in revoked:
                self.log_change(request, key, "Revoked.")
        if revoked:
            self.message_user(
                request, f"Revoked: {', '.join(str(key) for key in revoked)}.", messages.SUCCESS
            )
        if len(revoked) < len(chosen):
            self.message_user(request, "What was revoked before stays so.", messages.WARNING)

    def show_once(self, request: HttpRequest, key: ApiKey, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "The new API key",
            "key": key,
            "secret": secret,
            "list_url": reverse("admin:accounts_apikey_changelist"),
        }
        return TemplateResponse(request, "admin/issued.html", context)
