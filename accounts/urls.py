from accounts.limits.api import LimitsViewSet
from core.viewset import ApiRouter

router = ApiRouter()
router.register("", LimitsViewSet, "account")
urlpatterns = router.urls
