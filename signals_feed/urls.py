from django.urls import re_path

from .views import SignalViewSet

urlpatterns = [re_path(r"^signals/?$", SignalViewSet.as_view({"get": "list"}), name="signals")]
