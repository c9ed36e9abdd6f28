from core.viewset import ApiRouter

from .api.history import HistoryViewSet
from .api.prices import MarketViewSet
from .api.quotes import OrderFlowViewSet, QuotesViewSet
from .api.symbols import SymbolViewSet

router = ApiRouter()
router.register("symbols", SymbolViewSet, "symbols")
router.register("market", MarketViewSet, "market")
router.register("market", HistoryViewSet, "candles")
router.register("quotes", QuotesViewSet, "quotes")
router.register("orderflow", OrderFlowViewSet, "orderflow")
urlpatterns = router.urls
