from django.urls import re_path

from .views import SymbolViewSet

urlpatterns = [re_path(r"^symbols/?$", SymbolViewSet.as_view({"get": "list"}), name="symbols")]
