from core.viewset import ApiRouter

from .api.history import HistoryViewSet
from .api.prices import MarketViewSet
from .api.quotes import OrderFlowViewSet, QuotesViewSet

router = ApiRouter()
router.register("market", MarketViewSet, "market")
router.register("market", HistoryViewSet, "candles")
router.register("quotes", QuotesViewSet, "quotes")
router.register("orderflow", OrderFlowViewSet, "orderflow")
urlpatterns = router.urls
