from django.urls import re_path

from accounts.limits.api import LimitsViewSet

urlpatterns = [re_path(r"^limits/?$", LimitsViewSet.as_view({"get": "retrieve"}), name="limits")]
