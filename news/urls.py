from core.viewset import ApiRouter

from .calibration import CalibrationViewSet
from .feed import NewsViewSet

router = ApiRouter()
router.register("news", NewsViewSet, "news")
router.register("news", CalibrationViewSet, "calibration")
urlpatterns = router.urls
