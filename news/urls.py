from django.urls import re_path

from .analysis.views import AnalysisViewSet
from .views import CalibrationViewSet, NewsViewSet

urlpatterns = [
    re_path(r"^news/?$", NewsViewSet.as_view({"get": "list"}), name="news"),
    re_path(
        r"^news/calibration/?$", CalibrationViewSet.as_view({"get": "retrieve"}), name="news_calibration"
    ),
    re_path(r"^analysis/(?P<symbol>[^/]+)/?$", AnalysisViewSet.as_view({"get": "retrieve"}), name="analysis"),
]
