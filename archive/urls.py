from django.urls import re_path

from .api.files import ArchiveFileViewSet
from .api.listing import ArchiveViewSet

urlpatterns = [
    re_path(r"^archive/?$", ArchiveViewSet.as_view({"get": "list"}), name="archive"),
    re_path(
        r"^archive/(?P<path>.+?)/?$", ArchiveFileViewSet.as_view({"get": "retrieve"}), name="archive_file"
    ),
]
