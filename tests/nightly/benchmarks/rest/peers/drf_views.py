"""The same answers from Django REST framework and the ORM, written as most people do."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import action
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import UserRateThrottle
from rest_framework.viewsets import GenericViewSet

from accounts.key_text import digest_of
from accounts.models import ApiKey, User
from market.models import Candle, LastQuote
from news.models import NewsItem
from signals_feed.models import Signal

from .drf_serializers import (
    CandleSerializer,
    MarketQuerySerializer,
    NestedQuoteSerializer,
    NewsQuerySerializer,
    NewsSerializer,
    QuoteSerializer,
    SignalSerializer,
    SignalsQuerySerializer,
)


class ApiKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiKey]:
        digest = digest_of(request.headers.get("X-API-Key", ""), settings.KEY_PEPPER)
        key = ApiKey.objects.select_related("account__user").filter(digest=digest, revoked_at=None).first()
        if key is None:
            raise AuthenticationFailed("invalid API key")
        return key.account.user, key


class AccountThrottle(UserRateThrottle):
    rate = "1000000000/min"


class LimitedViewSet(GenericViewSet[Any]):
    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsAuthenticated,)
    throttle_classes = (AccountThrottle,)

    def get_throttles(self) -> list[Any]:
        self.throttles: list[Any] = [*super().get_throttles()]
        return self.throttles

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        for throttle in getattr(self, "throttles", ()):
            used, oldest = len(throttle.history), throttle.history[-1]
            response["X-RateLimit-Limit"] = throttle.num_requests
            response["X-RateLimit-Remaining"] = throttle.num_requests - used
            response["X-RateLimit-Reset"] = int(oldest + throttle.duration)
        return super().finalize_response(request, response, *args, **kwargs)


def parameters(serializer: type[Any], request: Request) -> dict[str, Any]:
    query = serializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


class MarketViewSet(LimitedViewSet):
    lookup_field = "instrument__symbol"
    lookup_url_kwarg = "symbol"
    queryset = LastQuote.objects.select_related("instrument")

    def retrieve(self, request: Request, symbol: str) -> Response:
        wanted = parameters(MarketQuerySerializer, request)
        quote = self.get_object()
        newest = Candle.objects.filter(instrument=quote.instrument, timeframe=wanted["timeframe"])
        candles = list(newest.order_by("-opened_at")[: wanted["bars"]])[::-1]
        return Response(
            {
                "symbol": quote.instrument.symbol,
                "timeframe": wanted["timeframe"],
                "ohlcv": CandleSerializer(candles, many=True).data,
                "quote": NestedQuoteSerializer(quote).data,
            }
        )

    @action(detail=True)
    def quote(self, request: Request, symbol: str) -> Response:
        return Response(QuoteSerializer(self.get_object()).data)


class SignalViewSet(LimitedViewSet):
    queryset = Signal.objects.select_related("user", "instrument").order_by("-published_at", "-id")

    def list(self, request: Request) -> Response:
        wanted = parameters(SignalsQuerySerializer, request)
        rows = self.get_queryset()
        if wanted["status"] != "all":
            rows = rows.filter(status=wanted["status"])
        if symbol := request.query_params.get("symbol"):
            rows = rows.filter(instrument__symbol=symbol)
        items = SignalSerializer(rows[: wanted["limit"]], many=True).data
        return Response({"items": items, "count": len(items)})


class NewsViewSet(LimitedViewSet):
    queryset = NewsItem.objects.filter(status="published").order_by("-published_at", "-id")

    def list(self, request: Request) -> Response:
        wanted = parameters(NewsQuerySerializer, request)
        rows = self.get_queryset()
        if category := request.query_params.get("category"):
            rows = rows.filter(category__in=category.split(","))
        return Response({"items": NewsSerializer(rows[: wanted["limit"]], many=True).data})
