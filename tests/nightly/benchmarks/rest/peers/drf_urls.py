from django.urls import include, path
from rest_framework.routers import DefaultRouter

from .drf_views import MarketViewSet, NewsViewSet, SignalViewSet

router = DefaultRouter(trailing_slash=False)
router.register("market", MarketViewSet, basename="market")
router.register("signals", SignalViewSet, basename="signals")
router.register("news", NewsViewSet, basename="news")

urlpatterns = [path("api/", include(router.urls))]
