from django.urls import re_path

from .calibration import CalibrationViewSet
from .feed import NewsViewSet

urlpatterns = [
    re_path(r"^news/?$", NewsViewSet.as_view({"get": "list"}), name="news"),
    re_path(
        r"^news/calibration/?$", CalibrationViewSet.as_view({"get": "retrieve"}), name="news_calibration"
    ),
]
