from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from core.contract import openapi
from core.viewset import ApiRouter, UnknownPathViewSet
from demo.login import demo_login
from demo.past import demo_past, shown_past
from market.admin import market_status
from market.push.views import TickViewSet
from news.newsroom import calibration_page, queue_page
from pages.documents import asyncapi, llms
from pages.front import about, pricing, robots, security_text, site_text, start
from pages.terminal import terminal, watchlist_json
from serving import prometheus

from .service_statistics import StatisticsViewSet

admin.autodiscover()

service = ApiRouter()
service.register("", StatisticsViewSet, "service")
api: list[URLPattern | URLResolver] = [
    path("", include("market.urls")),
    path("", include("signals_feed.api.urls")),
    path("", include("news.urls")),
    path("", include("analysis.urls")),
    path("", include("archive.urls")),
    path("", include(service.urls)),
    path("", include("accounts.urls")),
]

urlpatterns = [
    path("", start, {"coming_past": shown_past}, name="start"),
    re_path(r"^terminal/?$", terminal, {"coming_past": shown_past}, name="terminal"),
    path("terminal/watchlist.json", watchlist_json, name="watchlist"),
    path("about", about, name="about"),
    path("pricing", pricing, name="pricing"),
    path("terms", site_text, {"name": "terms"}, name="terms"),
    path("privacy", site_text, {"name": "privacy"}, name="privacy"),
    path("robots.txt", robots, name="robots"),
    path(".well-known/security.txt", security_text, name="security_text"),
    path("api/", include(api)),
    re_path(r"^api(/|$)", UnknownPathViewSet.as_view({"get": "absent"})),
    re_path(r"^ingest/ticks/?$", TickViewSet.as_view({"post": "create"}), name="ingest"),
    path("openapi.json", openapi.openapi, name="openapi"),
    path("asyncapi.json", asyncapi, name="asyncapi"),
    path("", include("pages.documents.urls")),
    path("llms.txt", llms, name="llms"),
    path("", include("status.urls")),
    path("metrics", prometheus.metrics, name="metrics"),
    path("accounts/", include("accounts.login.pages")),
    path("accounts/", include("allauth.urls")),
    path("demo-past.json", demo_past, name="demo_past"),
    path("demo-login/<str:token>", demo_login, name="demo_login"),
    path("", include("accounts.panel.urls")),
    path("", include("signals_feed.page_urls")),
    path("", include("transparency.urls")),
    path("admin/market/status/", admin.site.admin_view(market_status), name="market_status"),
    path("admin/news/queue/", admin.site.admin_view(queue_page), name="news_queue"),
    path("admin/news/calibration/", admin.site.admin_view(calibration_page), name="news_calibration_page"),
    path("admin/", admin.site.urls),
]

handler400 = "core.contract.errors.bad_request"
handler404 = "core.contract.errors.page_not_found"
handler500 = "core.contract.errors.server_error"
