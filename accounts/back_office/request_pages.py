"""Requests that staff accept or decline: for another tier, or to publish signals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.timezone import localtime
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import refuse_invisible
from accounts.login.mails import send_answer
from accounts.models import LONGEST_REASON

from .staff_pages import M, StaffAdmin, button, label


class DeclineForm(forms.Form):
    answer = forms.CharField(
        label="Reason",
        max_length=LONGEST_REASON,
        validators=[refuse_invisible],
        help_text="The person who asked can read it.",
        widget=UnfoldAdminTextInputWidget,
    )


class RequestAdmin(StaffAdmin[M]):
    owner = "account__user"
    decides_about_owner = True
    never = ("add", "delete")
    search_fields = ("account__user__username__startswith",)
    search_help_text = "Username starts with…"
    actions_detail: ClassVar[tuple[str, ...]] = ("accept", "decline")
    decline_request: Callable[..., None]
    refusal: type[Exception]
    mail: str
    """How the names of its templates begin; the state follows."""
    page: str
    """Where the person who asked reads the answer."""

    @label("State", waiting="warning", accepted="success", declined="danger")
    def state_now(self, found: Any) -> str:
        state: str = found.get_state_display()
        return state

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        found: Any = self.get_object(request, object_id)
        offered: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]
        return offered if found and found.state == found.State.OPEN else []

    @button("Decline", permission="change", icon="close", danger=True)
    def decline(self, request: HttpRequest, found: Any) -> HttpResponse:
        if (closed := self.already(request, found)) is not None:
            return closed
        form = DeclineForm(request.POST if "answered" in request.POST else None)
        if form.is_valid():
            return self.decide(
                request, found, partial(self.decline_request, **form.cleaned_data), "Declined."
            )
        text, title = f"The reason given: “{found.why}”", f"Decline the request of {found.account}"
        return self.ask(request, form, title=title, text=text, submit="Decline", danger=True)

    def already(self, request: HttpRequest, found: Any) -> HttpResponse | None:
        """The outcome, when nothing is left to decide."""
        if found.state == found.State.OPEN or "answered" in request.POST:
            return None
        by = f" by {found.decided_by}" if found.decided_by else ""
        at = f"{localtime(found.decided_at):%-d %b %Y, %H:%M} UTC"
        text = f"It was {found.get_state_display()}{by} on {at}. It cannot be decided again."
        title = f"The request of {found.account} is closed"
        return self.ask(request, forms.Form(), title=title, text=text, submit="")

    def send_decision(self, request: HttpRequest, found: Any) -> None:
        mail = f"{self.mail}_{found.state}"
        send_answer(request, found.account.user, mail, page=self.page, decided=found)

    def decide(self, request: HttpRequest, found: Any, act: Callable[..., None], done: str) -> HttpResponse:
        try:
            with transaction.atomic():
                act(found, by=self.decider(request))
                self.log_decision(request, found, done)
            self.message_user(request, done, messages.SUCCESS)
            self.send_decision(request, found)
        except self.refusal as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        return redirect(self.address("change"), found.pk)

    def decider(self, request: HttpRequest) -> Any:
        return request.user

    def log_decision(self, request: HttpRequest, found: Any, done: str) -> None:
        self.log_change(request, found, done)
