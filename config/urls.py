from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from accounts.api import UnknownPathViewSet
from market.back_office.page import market_status
from news.back_office.calibration import calibration_page
from news.back_office.queue import queue_page

from . import docs_pages, metrics, openapi
from .asyncapi import asyncapi
from .session import SessionViewSet
from .streams_page import streams_page
from .terminal import terminal

api: list[URLPattern | URLResolver] = [
    path("", include("instruments.urls")),
    path("", include("market.urls")),
    path("", include("signals_feed.urls")),
    path("", include("news.urls")),
    re_path(r"^session/?$", SessionViewSet.as_view({"get": "retrieve"}), name="session"),
    path("", include("accounts.urls")),
]

urlpatterns = [
    path("", terminal, name="start"),
    path("api/", include(api)),
    re_path(r"^api(/|$)", UnknownPathViewSet.as_view({"get": "absent"})),
    path("", include("market.ingest_urls")),
    path("openapi.json", openapi.openapi, name="openapi"),
    path("asyncapi.json", asyncapi, name="asyncapi"),
    re_path(r"^docs/?$", docs_pages.start_page, name="docs"),
    path("docs/api", openapi.api_page, name="api_page"),
    path("docs/streams", streams_page, name="streams_page"),
    path("docs/data", docs_pages.data_page, name="data_page"),
    path("docs/changelog", docs_pages.changelog_page, name="changelog"),
    path("llms.txt", docs_pages.llms, name="llms"),
    path("", include("status.urls")),
    path("metrics", metrics.metrics, name="metrics"),
    path("accounts/2fa/", include("accounts.factor_urls")),
    path("accounts/", include("allauth.urls")),
    path("", include("accounts.page_urls")),
    path("", include("signals_feed.page_urls")),
    path("admin/market/status/", admin.site.admin_view(market_status), name="market_status"),
    path("admin/news/queue/", admin.site.admin_view(queue_page), name="news_queue"),
    path("admin/news/calibration/", admin.site.admin_view(calibration_page), name="news_calibration_page"),
    path("admin/", admin.site.urls),
]

handler400 = "config.errors.bad_request"
handler404 = "config.errors.page_not_found"
handler500 = "config.errors.server_error"
