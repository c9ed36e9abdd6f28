from django.urls import path, re_path
from django.views.generic import RedirectView

from accounts.login.sessions import page_token

from .account import account, events, export
from .keys import first_run, keys, revoke, roll
from .usage import close, end_session, streams, tier, usage, withdraw

urlpatterns = [
    re_path(r"^page-token/?$", page_token, name="page_token"),
    re_path(r"^settings/?$", RedirectView.as_view(pattern_name="keys"), name="settings"),
    re_path(r"^settings/keys/?$", keys, name="keys"),
    path("settings/first-run", first_run, name="first_run"),
    path("settings/sessions/<int:pk>/end", end_session, name="end_session"),
    re_path(r"^settings/events/?$", events, name="events"),
    re_path(r"^settings/streams/?$", streams, name="open_streams"),
    path("settings/streams/close", close, name="close_stream"),
    re_path(r"^settings/tier/?$", tier, name="tier"),
    path("settings/tier/<int:pk>/withdraw", withdraw, name="withdraw_tier_request"),
    re_path(r"^settings/account/?$", account, name="account"),
    path("settings/account/export", export, name="export_account"),
    re_path(r"^settings/usage/?$", usage, name="usage"),
    path("settings/keys/<int:pk>/roll", roll, name="roll_key"),
    path("settings/keys/<int:pk>/revoke", revoke, name="revoke_key"),
]
