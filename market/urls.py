from django.urls import re_path

from .api.history import HistoryViewSet
from .api.prices import MarketViewSet
from .api.quotes import OrderFlowViewSet, QuotesViewSet

urlpatterns = [
    re_path(r"^market/(?P<symbol>[^/]+)/?$", MarketViewSet.as_view({"get": "retrieve"}), name="market"),
    re_path(r"^market/(?P<symbol>[^/]+)/quote/?$", MarketViewSet.as_view({"get": "quote"}), name="quote"),
    re_path(
        r"^market/(?P<symbol>[^/]+)/history/?$", HistoryViewSet.as_view({"get": "history"}), name="history"
    ),
    re_path(r"^quotes/?$", QuotesViewSet.as_view({"get": "list"}), name="quotes"),
    re_path(r"^orderflow/(?P<symbol>[^/]+)/?$", OrderFlowViewSet.as_view({"get": "list"}), name="orderflow"),
]
