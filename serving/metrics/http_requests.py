"""How many requests each route has answered, and how long they took. Only the event loop counts, so there is
no lock, and a request costs less than a microsecond."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"))
OTHER = "other"
API = "/api"

# There are a few dozen templates. This is a limit in case a client's words ever name a route.
MOST_ROUTES = 200


class RouteTimes:
    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def note(self, took_s: float) -> None:
        self.counts[bisect_left(BOUNDS_S, took_s)] += 1
        self.sum_s += took_s


class HttpRequests(Collector):
    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int], RouteTimes] = {}
        self._failed = 0

    def note(self, route: str, method: str, status: int, took_s: float) -> None:
        if status == 500 and route.startswith(API):
            self._failed += 1
        self.of(route, method, status).note(took_s)

    def of(self, route: str, method: str, status: int) -> RouteTimes:
        """The times of such answers."""
        times = self._times.get((route, method, status // 100))
        return self._first(route, method, status // 100) if times is None else times

    def of_api(self) -> tuple[int, int]:
        """How many requests below /api were answered, and how many of them with a fault of the service."""
        given = (sum(times.counts) for (route, _, _), times in self._times.items() if route.startswith(API))
        return sum(given), self._failed

    def _first(self, route: str, method: str, status_class: int) -> RouteTimes:
        if len(self._times) >= MOST_ROUTES * len(METHODS):
            route = OTHER
        key = route, method if method in METHODS else OTHER, status_class
        return self._times.setdefault(key, RouteTimes())

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(
            "tickwire_http_request_seconds",
            "From the whole head of a request to its answer, by route.",
            labels=("route", "method", "status"),
        )
        names = [*map(str, BOUNDS_S), "+Inf"]
        # A copy, because a thread reads while the loop counts.
        for (route, method, status_class), times in list(self._times.items()):
            counted = list(zip(names, accumulate(list(times.counts)), strict=True))
            family.add_metric((route, method, f"{status_class}xx"), counted, times.sum_s)
        yield family


@lru_cache(maxsize=1024)
def template_of(route: str) -> str:
    """Django's route in the usual notation: /api/market/{symbol}/quote."""
    text = route.removeprefix("^")
    if text.startswith("admin/"):
        # It has many pages, and each model and number would be a label.
        return "/admin"
    text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"{\1}", text)
    text = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", text)
    return "/" + re.sub(r"\(/\|\$\)|/\?\$|\$", "", text).strip("/")


http_requests = HttpRequests()
