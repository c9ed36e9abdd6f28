from django.urls import path, re_path
from django.views.generic import RedirectView

from . import pages, stream_pages
from .demo_login import demo_login
from .event_pages import events
from .page_access import page_token
from .session_pages import end_session
from .tier_pages import take_back, tier
from .usage_pages import usage

urlpatterns = [
    path("demo-login/<str:token>", demo_login, name="demo_login"),
    re_path(r"^page-token/?$", page_token, name="page_token"),
    re_path(r"^settings/?$", RedirectView.as_view(pattern_name="keys"), name="settings"),
    re_path(r"^settings/keys/?$", pages.keys, name="keys"),
    path("settings/sessions/<int:pk>/end", end_session, name="end_session"),
    re_path(r"^settings/events/?$", events, name="events"),
    re_path(r"^settings/streams/?$", stream_pages.streams, name="open_streams"),
    path("settings/streams/close", stream_pages.close, name="close_stream"),
    re_path(r"^settings/tier/?$", tier, name="tier"),
    path("settings/tier/<int:pk>/withdraw", take_back, name="withdraw_tier_request"),
    re_path(r"^settings/usage/?$", usage, name="usage"),
    path("settings/keys/<int:pk>/roll", pages.roll, name="roll_key"),
    path("settings/keys/<int:pk>/revoke", pages.revoke, name="revoke_key"),
]
