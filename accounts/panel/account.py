"""The settings panel's page on which owners take their data along or delete their account."""

from collections.abc import Callable
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.decorators import rate_limit
from django import forms
from django.contrib.auth import logout
from django.http import HttpResponse
from django.shortcuts import render

from accounts.ending.account_data import account_data
from accounts.ending.deletion import DeletionRefused, delete_account
from accounts.ending.staying import staying_rows
from accounts.models import PUBLISHER, User

from .requests import PersonRequest, View, settings_form, settings_page

MAIL = "account/email/account_deleted"


class DeleteAccountForm(forms.Form):
    name = forms.CharField(
        max_length=150,
        label="Your username, to confirm",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self._user.get_username():
            raise forms.ValidationError("This is not your username. Nothing was deleted.")
        return name


proven_to_send: Callable[[View], View] = reauthentication_required(allow_get=True)
proven: Callable[[View], View] = reauthentication_required
counted: Callable[[View], View] = rate_limit(action="export_account", limit_get=True)


@settings_form
@proven_to_send
def account(request: PersonRequest) -> HttpResponse:
    """Whoever sends it has shown their password or second factor within the last minutes."""
    if request.method != "POST":
        return account_page(request, DeleteAccountForm(request.user))
    form = DeleteAccountForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, form, status=400)
    address = EmailAddress.objects.get_primary_email(request.user) or request.user.email
    ledger_name, stays = f"{PUBLISHER}{request.user.pk}", staying_rows.of(request.user)
    try:
        pseudonym = delete_account(request.user)
    except DeletionRefused as refusal:
        form.add_error(None, str(refusal))
        return account_page(request, form, status=409)
    if address:
        # Whoever has a stranger in their account should learn of it.
        get_adapter(request).send_notification_mail(MAIL, request.user, email=address)
    logout(request)
    context = {"pseudonym": pseudonym, "ledger_name": ledger_name, "stays": stays}
    return render(request, "settings/account_deleted.html", context)


@settings_page
@proven
@counted
def export(request: PersonRequest) -> HttpResponse:
    packed = account_data.packed(request.user)
    return HttpResponse(
        packed,
        content_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="tickwire-account.zip"'},
    )


def account_page(request: PersonRequest, form: DeleteAccountForm, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "stays": staying_rows.of(request.user)}
    return render(request, "settings/account.html", context, status=status)
