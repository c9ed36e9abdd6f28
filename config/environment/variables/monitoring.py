from functools import partial

from ..addresses import read_own_host
from ..variable import VariableGroup, secret, switch, text, whole
from .process import HIGHEST_PORT

MONITORING = VariableGroup(
    "Metrics and logs",
    (
        secret("METRICS_TOKEN", "The bearer token with which `/metrics` can be read; none closes it."),
        whole(
            "METRICS_PORT",
            0,
            "A separate port of `serve` for metrics and probes; 0 means none. If it is taken, the next free "
            "port is used, or in production none.",
            highest=HIGHEST_PORT,
        ),
        whole(
            "ENGINE_PORT",
            0,
            "The same for `engine`; 0 means none.",
            highest=HIGHEST_PORT,
        ),
        text(
            "METRICS_HOST",
            "127.0.0.1",
            "The address on which these ports listen.",
            read=partial(read_own_host, variable="METRICS_HOST"),
        ),
        switch(
            "METRICS_PER_SYMBOL",
            False,
            "Adds the figures of each instrument to the metrics: 0.8 KB for each at every scrape.",
        ),
        text(
            "LOG_LEVEL",
            "INFO",
            "The lowest level that is logged.",
            among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        ),
        text(
            "LOG_FORMAT",
            None,
            "Lines of JSON, or lines that are easy to read.",
            among=("json", "text"),
            otherwise="`json` in production, else `text`",
        ),
        switch("ACCESS_LOG", False, "Also logs successful requests to `/api` and `/ingest`."),
        whole(
            "SLOW_REQUEST_MS",
            1_000,
            "A request that takes at least this long is logged as slow; 0 logs none.",
        ),
    ),
)
