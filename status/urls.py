from django.urls import path

from .views import IncidentFeed, status_json, status_page

urlpatterns = [
    path("status", status_page, name="status"),
    path("status.json", status_json, name="status_json"),
    path("status.rss", IncidentFeed(), name="status_feed"),
]
