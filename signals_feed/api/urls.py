from django.urls import re_path

from .ledger import LedgerViewSet
from .proof import ProofViewSet
from .publishers import PublisherViewSet
from .signals import SignalViewSet

urlpatterns = [
    re_path(r"^signals/?$", SignalViewSet.as_view({"get": "list"}), name="signals"),
    re_path(r"^signals/ledger/?$", LedgerViewSet.as_view({"get": "list"}), name="signal_ledger"),
    re_path(r"^signals/(?P<id>[^/]+)/?$", SignalViewSet.as_view({"get": "retrieve"}), name="signal"),
    re_path(
        r"^signals/(?P<id>[^/]+)/proof/?$", ProofViewSet.as_view({"get": "retrieve"}), name="signal_proof"
    ),
    re_path(
        r"^publishers/(?P<user>[^/]+)/?$", PublisherViewSet.as_view({"get": "retrieve"}), name="api_publisher"
    ),
]
