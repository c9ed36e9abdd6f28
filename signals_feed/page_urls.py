from django.urls import path, re_path

from .public_pages.leaderboard import leaderboard
from .public_pages.publisher import publisher_page
from .publishing import pages

urlpatterns = [
    re_path(r"^publishers/?$", leaderboard, name="publishers"),
    path("publishers/<str:user>", publisher_page, name="publisher_page"),
    re_path(r"^settings/signals/?$", pages.publish_signals, name="publish_signals"),
    path("settings/signals/live", pages.live_signals, name="live_signals"),
    path("settings/signals/<uuid:pk>/close", pages.close_signal, name="close_signal"),
]
