from django.urls import path, re_path

from . import publish_pages
from .publisher_page import publisher_page

urlpatterns = [
    path("publishers/<str:user>", publisher_page, name="publisher"),
    re_path(r"^settings/signals/?$", publish_pages.publish_signals, name="publish_signals"),
    path("settings/signals/live", publish_pages.live_signals, name="live_signals"),
    path("settings/signals/<uuid:pk>/close", publish_pages.close_signal, name="close_signal"),
]
