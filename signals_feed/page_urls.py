from django.urls import path, re_path

from .public_pages.ledger import (
    checked_signals,
    filled_signals,
    ledger_page,
    publisher_bundle,
    publisher_marks,
)
from .public_pages.publisher import leaderboard, publisher_page, publisher_scorecard
from .public_pages.signal import signal_page
from .publishing import pages
from .publishing.pages import ask, withdraw

urlpatterns = [
    re_path(r"^publishers/?$", leaderboard, name="publishers"),
    path("publishers/<str:user>", publisher_page, name="publisher_page"),
    path("publishers/<str:user>/scorecard.svg", publisher_scorecard, name="publisher_scorecard"),
    path("publishers/<str:user>/bundle.zip", publisher_bundle, name="publisher_bundle"),
    re_path(r"^ledger/?$", ledger_page, name="ledger_page"),
    path("publishers/<str:user>/marks", publisher_marks, name="publisher_marks"),
    path("signals/checked", checked_signals, name="checked_signals"),
    path("signals/filled", filled_signals, name="filled_signals"),
    path("signals/<uuid:pk>", signal_page, name="signal_page"),
    re_path(r"^settings/signals/?$", pages.publish_signals, name="publish_signals"),
    path("settings/signals/request", ask, name="ask_to_publish"),
    path("settings/signals/requests/<int:pk>/withdraw", withdraw, name="withdraw_publisher_request"),
    path("settings/signals/live", pages.live_signals, name="live_signals"),
    path("settings/signals/<uuid:pk>/close", pages.close_signal, name="close_signal"),
]
