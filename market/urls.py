from core.viewset import ApiRouter

from .api.history import HistoryViewSet
from .api.prices import MarketViewSet
from .api.quotes import OrderFlowViewSet, QuotesViewSet
from .api.symbols import SymbolViewSet
from .api.ticks import TicksViewSet

router = ApiRouter()
router.register("symbols", SymbolViewSet, "symbols")
router.register("market", MarketViewSet, "market")
router.register("market", HistoryViewSet, "candles")
router.register("market", TicksViewSet, "ticks")
router.register("quotes", QuotesViewSet, "quotes")
router.register("orderflow", OrderFlowViewSet, "orderflow")
urlpatterns = router.urls
