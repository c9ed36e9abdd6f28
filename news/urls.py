from django.urls import re_path

from .views import NewsViewSet

urlpatterns = [re_path(r"^news/?$", NewsViewSet.as_view({"get": "list"}), name="news")]
