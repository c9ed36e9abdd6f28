"""What the benchmark needs, built or installed by itself as far as it may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PLACE = Path(os.environ.get("BENCH_DIR", HERE.parents[2] / "var" / "bench")).resolve()
"""Where what was built and installed is kept for the next time."""
LOAD, LOAD_TLS, LIMIT = PLACE / "load", PLACE / "load-tls", PLACE / "limit"
NODE_MODULES = PLACE / "node_modules"
CERTIFICATE, KEY = PLACE / "certificate.pem", PLACE / "key.pem"
WS = "ws@8.18.3"
NGINX_MODULES = Path("/usr/lib/nginx/modules")
NEEDED = {
    "gcc": "gcc",
    "libssl-dev": "/usr/include/openssl/ssl.h",
    "openssl": "openssl",
    "nodejs": "node",
    "npm": "npm",
    "nats-server": "nats-server",
    "nginx-light": "nginx",
    "libnginx-mod-nchan": str(NGINX_MODULES / "ngx_nchan_module.so"),
}
"""Debian's packages, and what shows that each is there."""
GCC = ("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")


def prepare() -> list[str]:
    """Returns what could not be had: the peers that need it are not run."""
    PLACE.mkdir(parents=True, exist_ok=True)
    missing = [package for package, sign in NEEDED.items() if not is_there(sign)]
    if missing and os.geteuid() == 0:
        install(missing)
    build()
    if not CERTIFICATE.exists() and shutil.which("openssl"):
        make_certificate()
    if not (NODE_MODULES / "ws").exists() and shutil.which("npm"):
        run("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(PLACE), WS)
    return [package for package, sign in NEEDED.items() if not is_there(sign)]


def is_there(sign: str) -> bool:
    return Path(sign).exists() if sign.startswith("/") else shutil.which(sign) is not None


def install(packages: list[str]) -> None:
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-qq", environment=environment)
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, environment=environment)


def build() -> None:
    sources = [str(path) for path in sorted((HERE / "client").glob("*.c"))]
    subprocess.run([*GCC, *sources, "-o", LOAD], check=True)
    subprocess.run([*GCC, str(HERE / "peers" / "limit.c"), "-o", LIMIT], check=True)
    if is_there(NEEDED["libssl-dev"]):
        subprocess.run([*GCC, "-DTLS", *sources, "-o", LOAD_TLS, "-lssl", "-lcrypto"], check=True)


def make_certificate() -> None:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    named = ("-nodes", "-days", "3650", "-subj", "/CN=localhost")
    run("openssl", "req", "-x509", *curve, *named, "-keyout", str(KEY), "-out", str(CERTIFICATE))


def run(*command: str, environment: dict[str, str] | None = None) -> None:
    """What fails is said, and the peers that miss it are named in the table."""
    done = subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}\n")
