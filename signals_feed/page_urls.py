from django.urls import path, re_path

from signals_feed.publishers.page import publisher_page

from .publishing import pages

urlpatterns = [
    path("publishers/<str:user>", publisher_page, name="publisher"),
    re_path(r"^settings/signals/?$", pages.publish_signals, name="publish_signals"),
    path("settings/signals/live", pages.live_signals, name="live_signals"),
    path("settings/signals/<uuid:pk>/close", pages.close_signal, name="close_signal"),
]
