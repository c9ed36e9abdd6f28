"""What the pages of all kinds of keys share: issued and shown once, revoked, never deleted."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts.keys.issuing import TooManyKeys

from .staff_pages import StaffAdmin, actor, asked, button, label

K = TypeVar("K", bound=Model)
ENDS = "It stops working within two seconds, on open streams too. This cannot be undone."


class HasState(Protocol):
    def state(self, at: Any) -> str: ...


class KeyAdmin(StaffAdmin[K]):
    """A secret is only ever in the answer that made it."""

    issue_form: ClassVar[type[forms.Form]]
    useful: ClassVar[dict[str, tuple[str, ...]]] = {"active": ("revoke",)}
    """The buttons of a key, by its state."""
    ordering = ("-pk",)
    sortable_by = ()
    actions = ("revoke_chosen",)
    actions_detail: ClassVar[tuple[str, ...]] = ("revoke",)

    def issue_one(self, *, by: str, **chosen: Any) -> tuple[K, str]:
        raise NotImplementedError

    def revoke_one(self, key: K, *, by: str) -> bool:
        raise NotImplementedError

    @label("State", active="success", rolled="warning", revoked="danger")
    def state(self, key: K) -> str:
        return cast(HasState, key).state(timezone.now())

    def has_delete_permission(self, request: HttpRequest, obj: K | None = None) -> bool:
        """Deleting would take a key away without telling anybody: revoke it."""
        return False

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
        form = self.issue_form(request.POST if asked(request) else None, initial=request.GET.dict())
        if form.is_valid():
            try:
                with transaction.atomic():
                    key, secret = self.issue_one(by=actor(request), **form.cleaned_data)
                    self.refuse_beyond_reach(request, key)
                    self.log_addition(request, key, "Issued.")
                return self.show_once(request, key, secret)
            except TooManyKeys as error:
                form.add_error(None, str(error))
        title = f"Issue an {self.opts.verbose_name}"
        return self.ask(request, form, title=title, text="The next page shows it, once.", submit="Issue")

    @button("Revoke", permission="change", icon="block", danger=True)
    def revoke(self, request: HttpRequest, key: K) -> HttpResponse:
        if asked(request):
            self.revoke_all(request, [key])
            return redirect(self.address("change"), key.pk)
        return self.ask_before_revoking(request, [key])

    @admin.action(description="Revoke", permissions=("change",))
    def revoke_chosen(self, request: HttpRequest, queryset: QuerySet[K]) -> HttpResponse | None:
        chosen = self.few_enough(request, queryset)
        if not chosen:
            return None
        if asked(request):
            self.revoke_all(request, chosen)
            return None
        return self.ask_before_revoking(request, chosen, action="revoke_chosen")

    def ask_before_revoking(self, request: HttpRequest, chosen: list[K], action: str = "") -> HttpResponse:
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
        with transaction.atomic():
            revoked = [key for key in chosen if self.revoke_one(key, by=actor(request))]
            for key in revoked:
                self.log_change(request, key, "Revoked.")
        if revoked:
            names = ", ".join(str(key) for key in revoked)
            self.message_user(request, f"Revoked: {names}.", messages.SUCCESS)
        if len(revoked) < len(chosen):
            self.message_user(request, "What was revoked before stays so.", messages.WARNING)

    def show_once(self, request: HttpRequest, key: K, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"The new {self.opts.verbose_name}",
            "key": key,
            "secret": secret,
            "list_url": reverse(self.address("changelist")),
        }
        return TemplateResponse(request, "admin/issued.html", context)

    def address(self, page: str) -> str:
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
