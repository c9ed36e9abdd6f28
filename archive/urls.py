from core.viewset import ApiRouter

from .views import ArchiveFileViewSet, ArchiveViewSet

router = ApiRouter()
router.register("archive", ArchiveViewSet, "archive")
router.register("archive", ArchiveFileViewSet, "archive-file")
urlpatterns = router.urls
