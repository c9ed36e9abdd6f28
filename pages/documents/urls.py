from django.urls import path, re_path
from django.views.generic import RedirectView

from . import rendering
from .own_pages import OWN_PAGES
from .packages import client_package
from .search import search_index
from .views import document_image, document_page, operation_page, own_page

# The names by which templates lead to them.
NAMES = {
    "/docs": "docs",
    "/docs/api": "api_page",
    "/docs/streams": "streams_page",
    "/docs/computed": "computed_page",
}
IMAGE = "|".join(suffix.removeprefix(".") for suffix in rendering.IMAGES)


def name_of(path: str) -> str:
    return NAMES.get(path, path.removeprefix("/docs/").replace("/", "_"))


urlpatterns = [
    re_path(r"^docs/?$", own_page, name="docs"),
    *(path(page.removeprefix("/"), own_page, name=name_of(page)) for page in OWN_PAGES if page != "/docs"),
    path(
        "docs/streams/refusals",
        RedirectView.as_view(url="/docs/streams/errors", permanent=True),
        name="streams_errors_before",
    ),
    path("clients/<str:name>", client_package, name="client_package"),
    path("docs/search.json", search_index, name="docs_search"),
    path("docs/api/<str:name>", operation_page, name="operation"),
    re_path(rf"^docs/(?P<name>[\w/.-]+\.(?:{IMAGE}))$", document_image, name="document_image"),
    path("docs/<path:name>", document_page, name="document"),
]
