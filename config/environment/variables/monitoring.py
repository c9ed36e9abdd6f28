from ..variable import VariableGroup, secret, switch, text, whole
from .process import HIGHEST_PORT

MONITORING = VariableGroup(
    "Metrics and logs",
    (
        secret("METRICS_TOKEN", "Whoever sends it as a bearer token may read `/metrics`; none closes it."),
        whole(
            "METRICS_PORT",
            0,
            "A port of `serve` for metrics and probes alone; 0 is none. If it is taken, the next free one, "
            "and in production none.",
            highest=HIGHEST_PORT,
        ),
        whole(
            "ENGINE_PORT",
            0,
            "The same for `engine`: its metrics and probes; 0 is none.",
            highest=HIGHEST_PORT,
        ),
        text("METRICS_HOST", "127.0.0.1", "The address on which these ports listen."),
        text(
            "LOG_LEVEL",
            "INFO",
            "The lowest level that is logged.",
            among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        ),
        text(
            "LOG_FORMAT",
            None,
            "Lines of JSON, or lines for people.",
            among=("json", "text"),
            otherwise="`json` in production, else `text`",
        ),
        switch("ACCESS_LOG", False, "Logs each success of `/api` and `/ingest` too, and not refusals alone."),
        whole("SLOW_REQUEST_MS", 1_000, "A request that takes this long is logged as slow; 0 logs none."),
    ),
)
