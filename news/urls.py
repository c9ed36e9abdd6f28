from django.urls import re_path

from .analysis.views import AnalysisViewSet
from .views import NewsViewSet

urlpatterns = [
    re_path(r"^news/?$", NewsViewSet.as_view({"get": "list"}), name="news"),
    re_path(r"^analysis/(?P<symbol>[^/]+)/?$", AnalysisViewSet.as_view({"get": "retrieve"}), name="analysis"),
]
