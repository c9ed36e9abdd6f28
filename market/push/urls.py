from django.urls import re_path

from .views import TickViewSet

urlpatterns = [
    re_path(r"^ingest/ticks/?$", TickViewSet.as_view({"post": "take"}), name="ingest"),
]
