"""What the benchmark needs, built or installed by itself as far as it may."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.nightly.benchmarks.processes import provide, run

HERE = Path(__file__).parent
PLACE = Path(os.environ.get("BENCH_DIR", HERE.parents[3] / "var" / "bench")).resolve()
"""Where what was built and installed is kept for the next time."""
LOAD, LIMIT = PLACE / "load", PLACE / "limit"
NODE_MODULES = PLACE / "node_modules"
WS = "ws@8.18.3"
NGINX_MODULES = Path("/usr/lib/nginx/modules")
NEEDED = {
    "gcc": "gcc",
    "nodejs": "node",
    "npm": "npm",
    "nats-server": "nats-server",
    "nginx-light": "nginx",
    "libnginx-mod-nchan": str(NGINX_MODULES / "ngx_nchan_module.so"),
}
"""Debian's packages, and what shows that each is there."""
GCC = ("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")


def prepare() -> None:
    """What cannot be had is named, and the peers that need it are not run."""
    PLACE.mkdir(parents=True, exist_ok=True)
    provide(NEEDED)
    build()
    if not (NODE_MODULES / "ws").exists() and shutil.which("npm"):
        run("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(PLACE), WS)


def build() -> None:
    sources = [str(path) for path in sorted((HERE / "client").glob("*.c"))]
    subprocess.run([*GCC, *sources, "-o", LOAD], check=True)
    subprocess.run([*GCC, str(HERE / "peers" / "limit.c"), "-o", LIMIT], check=True)
