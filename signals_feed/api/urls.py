from core.viewset import ApiRouter

from .proof import ProofViewSet
from .publishers import PublisherViewSet
from .signals import SignalViewSet

router = ApiRouter()
router.register("signals", SignalViewSet, "signals")
router.register("signals", ProofViewSet, "proof")
router.register("publishers", PublisherViewSet, "publishers")
urlpatterns = router.urls
