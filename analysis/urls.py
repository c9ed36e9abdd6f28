from django.urls import re_path

from .views import AnalysisViewSet

urlpatterns = [
    re_path(r"^analysis/(?P<symbol>[^/]+)/?$", AnalysisViewSet.as_view({"get": "retrieve"}), name="analysis"),
]
