from django.urls import re_path

from .views import ArchiveFileViewSet, ArchiveViewSet

urlpatterns = [
    re_path(r"^archive/?$", ArchiveViewSet.as_view({"get": "list"}), name="archive"),
    re_path(
        r"^archive/(?P<path>.+?)/?$", ArchiveFileViewSet.as_view({"get": "retrieve"}), name="archive_file"
    ),
]
