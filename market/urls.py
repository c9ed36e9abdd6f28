from django.urls import re_path

from .api.history import HistoryViewSet
from .api.prices import MarketViewSet

urlpatterns = [
    re_path(r"^market/(?P<symbol>[^/]+)/?$", MarketViewSet.as_view({"get": "retrieve"}), name="market"),
    re_path(r"^market/(?P<symbol>[^/]+)/quote/?$", MarketViewSet.as_view({"get": "quote"}), name="quote"),
    re_path(
        r"^market/(?P<symbol>[^/]+)/history/?$", HistoryViewSet.as_view({"get": "history"}), name="history"
    ),
]
