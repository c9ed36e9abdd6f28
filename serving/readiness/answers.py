"""Readiness as it is told: by /livez and /readyz, from memory and whatever host name was asked for, and in
the metrics.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.program.version import VERSION

from .monitor import monitor

LIVEZ, READYZ = "/livez", "/readyz"

# The older name of /livez.
HEALTHZ = "/healthz"
PATHS = frozenset((LIVEZ, READYZ, HEALTHZ))


async def answer_probe(scope: dict[str, Any], send: Any) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        status, body = 405, {"status": "GET and HEAD only"}
    elif scope["path"] != READYZ:
        status, body = 200, {"status": "ok"}
    else:
        status, body = readiness()
    encoded = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(encoded))]
    headers.append((b"cache-control", b"no-store"))
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else encoded})


def readiness() -> tuple[int, dict[str, Any]]:
    """200 while requests here would succeed."""
    found = monitor.verdict()
    body: dict[str, Any] = {"status": "not ready" if found.reasons else "ready"}
    if found.reasons:
        body["reasons"] = found.reasons
    return (503 if found.reasons else 200), body | {"degraded": found.degraded, "checks": found.checks}


class ReadinessMetrics(Collector):
    def describe(self) -> list[Metric]:
        """Nothing is looked at when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        found = monitor.verdict()
        version = GaugeMetricFamily(
            "tickwire_version", "1, with the version of the program that runs.", labels=("version",)
        )
        version.add_metric((VERSION,), 1)
        yield version
        ready = GaugeMetricFamily("tickwire_ready", "1 while requests to this process would succeed.")
        ready.add_metric((), not found.reasons)
        yield ready
        text = "1 while it is away for all processes, as far as this one knows."
        degraded = GaugeMetricFamily("tickwire_degraded", text, labels=("what", "why"))
        alone = GaugeMetricFamily(
            "tickwire_cut_off", "1 while it is away for this process alone.", labels=("what",)
        )
        for name, why in found.checks.items():
            degraded.add_metric((name, why), name in found.degraded)
            alone.add_metric((name,), name in found.reasons)
        yield degraded
        yield alone
