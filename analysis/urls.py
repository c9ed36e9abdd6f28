from core.viewset import ApiRouter

from .views import AnalysisViewSet

router = ApiRouter()
router.register("analysis", AnalysisViewSet, "analysis")
urlpatterns = router.urls
