"""Requests are counted and timed by the template of their route."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from prometheus_client import CollectorRegistry

from serving.metrics.http_requests import BOUNDS_S, MOST_ROUTES, HttpRequests, http_requests, template_of
from tests.client import Server
from tests.patience import PATIENCE_S

NAME = "tickwire_http_request_seconds"


def read(requests: HttpRequests) -> Callable[..., float | None]:
    registry = CollectorRegistry()
    registry.register(requests)

    def value(suffix: str, **labels: str) -> float | None:
        return registry.get_sample_value(NAME + suffix, labels)

    return value


def test_request_is_counted_in_its_bucket_and_all_above() -> None:
    requests = HttpRequests()
    requests.note("/api/symbols", "GET", 200, 0.02)
    requests.note("/api/symbols", "GET", 204, 0.3)
    # Exactly at a bound is within it.
    requests.note("/", "GET", 200, BOUNDS_S[3])
    for method in ("BREW", "PROPFIND"):
        requests.note("/api", method, 405, 0.001)

    value, labels = read(requests), {"route": "/api/symbols", "method": "GET", "status": "2xx"}
    counts = {le: value("_bucket", le=le, **labels) for le in ("0.01", "0.025", "0.25", "0.5", "+Inf")}
    assert counts == {"0.01": 0, "0.025": 1, "0.25": 1, "0.5": 2, "+Inf": 2}
    assert (value("_count", **labels), value("_sum", **labels)) == (2, 0.32)
    assert value("_bucket", route="/", method="GET", status="2xx", le=str(BOUNDS_S[3])) == 1
    assert value("_count", route="/api", method="other", status="4xx") == 2


def test_labels_are_bounded_whatever_names_a_route() -> None:
    requests = HttpRequests()
    for number in range(10 * MOST_ROUTES):
        requests.note(f"/{number}", "GET", 200, 0.001)
    (family,) = requests.collect()
    assert len({sample.labels["route"] for sample in family.samples}) <= 7 * MOST_ROUTES + 1


@pytest.mark.parametrize(
    ("route", "template"),
    [
        ("", "/"),
        ("^settings/keys/?$", "/settings/keys"),
        ("api/market/(?P<symbol>[^/]+)/quote/?$", "/api/market/{symbol}/quote"),
        ("^api(/|$)", "/api"),
        ("demo-login/<str:token>", "/demo-login/{token}"),
        (
            "accounts/password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
            "/accounts/password/reset/key/{uidb36}-{key}",
        ),
        ("admin/accounts/apikey/<path:object_id>/change/", "/admin"),
    ],
)
def test_template_is_what_people_write(route: str, template: str) -> None:
    assert template_of(route) == template


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("OPTIONS", "/api/market/EURUSD/quote", "/api/market/{symbol}/quote", "2xx"),
        ("GET", "/api/market/NOTHING/quote", "/api/market/{symbol}/quote", "4xx"),
        ("GET", "/api/nothing", "/api", "4xx"),
        ("GET", "/api/a%2Fb", "/api", "4xx"),
        ("GET", "/docs/computed", "/docs/computed", "2xx"),
        ("GET", "/static/nothing.css", "/static", "4xx"),
        ("GET", "/nothing/here", "nowhere", "4xx"),
        ("GET", "/admin/accounts/apikey/", "/admin", "3xx"),
    ],
)
def test_request_is_counted_by_template_and_probes_are_not(
    server: Server, method: str, path: str, route: str, status: str
) -> None:
    def counts() -> tuple[float, float]:
        (family,) = http_requests.collect()
        every = sum(sample.value for sample in family.samples if sample.name.endswith("_count"))
        return every, read(http_requests)("_count", route=route, method=method, status=status) or 0.0

    everything, before = counts()
    httpx.request(method, f"{server.url}{path}", timeout=PATIENCE_S)
    for probe in ("/healthz", "/readyz"):
        httpx.get(f"{server.url}{probe}", timeout=PATIENCE_S)
    assert counts() == (everything + 1, before + 1)
