from core.viewset import ApiRouter

from .views import SymbolViewSet

router = ApiRouter()
router.register("symbols", SymbolViewSet, "symbols")
urlpatterns = router.urls
