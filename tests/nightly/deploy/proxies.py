"""nginx, HAProxy and Caddy with the files of deploy/, in which only what is of this machine changes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.certificates import make_certificate
from tests.patience import wait_until
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT, stop

from .installation import HOST

DEPLOY = ROOT / "deploy"
# Instead of a minute: longer than the service's pings are apart, and short enough to wait for.
IDLE_S = 20
# Instead of 200 connections of an address.
CONNECTIONS = 30
NGINX = """
daemon off; {user} worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  include tickwire/tickwire.conf;
}}
"""


class Proxy(NamedTuple):
    name: str
    directory: Path
    certificate: Path
    http: int
    https: int

    @property
    def logs(self) -> str:
        """All that it wrote."""
        return "\n".join(path.read_text() for path in self.directory.glob("*.log"))


class Program(NamedTuple):
    """How one is started, and how its configuration is checked."""

    run: Sequence[str]
    check: Sequence[str]
    environment: Mapping[str, str] = {}


def adapted(path: Path, changes: Mapping[str, str]) -> str:
    """What is to change must be there, or the test would run something else than what is shipped."""
    text = path.read_text()
    for shipped, here in changes.items():
        assert shipped in text, f"{path.name} has no {shipped!r}"
        text = text.replace(shipped, here)
    return text


def nginx(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program, folder = require_debian("nginx", "nginx-light"), proxy.directory / "tickwire"
    folder.mkdir()
    changes = {
        "api.example.com": HOST,
        "127.0.0.1:8001": f"127.0.0.1:{ports[0]}",
        "127.0.0.1:8002": f"127.0.0.1:{ports[1]}",
        "listen 80": f"listen 127.0.0.1:{proxy.http}",
        "listen 443": f"listen 127.0.0.1:{proxy.https}",
        "/etc/nginx/tickwire/fullchain.pem": str(proxy.certificate),
        "/etc/nginx/tickwire/privkey.pem": str(key),
        "/var/log/nginx/": f"{proxy.directory}/",
        "limit_conn tickwire_clients 200": f"limit_conn tickwire_clients {CONNECTIONS}",
    }
    (folder / "tickwire.conf").write_text(adapted(DEPLOY / "nginx/tickwire.conf", changes))
    idle = {"proxy_read_timeout 60s": f"proxy_read_timeout {IDLE_S}s"}
    (folder / "proxy.conf").write_text(adapted(DEPLOY / "nginx/proxy.conf", idle))
    main = proxy.directory / "nginx.conf"
    main.write_text(NGINX.format(directory=proxy.directory, user="user root;" if os.geteuid() == 0 else ""))
    command = [program, "-p", str(proxy.directory), "-c", str(main)]
    return Program(command, [*command, "-t"])


def haproxy(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program = require_debian("haproxy")
    both = proxy.directory / "tickwire.pem"
    both.write_bytes(proxy.certificate.read_bytes() + key.read_bytes())
    changes = {
        "api.example.com": HOST,
        "127.0.0.1:8001": f"127.0.0.1:{ports[0]}",
        "127.0.0.1:8002": f"127.0.0.1:{ports[1]}",
        "bind :80": f"bind 127.0.0.1:{proxy.http}",
        "bind :443": f"bind 127.0.0.1:{proxy.https}",
        "/etc/haproxy/tickwire.pem": str(both),
        "log /dev/log local0": "log stdout format raw local0",
        "    user haproxy\n    group haproxy\n": "",
        "sc0_conn_cur(addresses) gt 200": f"sc0_conn_cur(addresses) gt {CONNECTIONS}",
        # Not each machine allows the descriptors.
        "maxconn 20000": "maxconn 2000",
        "timeout tunnel 60s": f"timeout tunnel {IDLE_S}s",
    }
    path = proxy.directory / "haproxy.cfg"
    path.write_text(adapted(DEPLOY / "haproxy/haproxy.cfg", changes))
    return Program([program, "-db", "-f", str(path)], [program, "-c", "-f", str(path)])


def caddy(proxy: Proxy, ports: Sequence[int], key: Path) -> Program:
    program, path = require_debian("caddy"), proxy.directory / "Caddyfile"
    here = f"admin off\n\tdefault_bind 127.0.0.1\n\thttp_port {proxy.http}\n\thttps_port {proxy.https}"
    changes = {
        "{\n\tservers {": f"{{\n\t{here}\n\tservers {{",
        # One of its own, instead of one that it would fetch.
        "{$TICKWIRE_HOST} {\n\timport": f"{{$TICKWIRE_HOST}} {{\n\ttls {proxy.certificate} {key}\n\timport",
    }
    path.write_text(adapted(DEPLOY / "caddy/Caddyfile", changes))
    environment = {
        "TICKWIRE_HOST": HOST,
        "TICKWIRE_WEB": " ".join(f"127.0.0.1:{port}" for port in ports),
        "XDG_DATA_HOME": str(proxy.directory / "data"),
        "XDG_CONFIG_HOME": str(proxy.directory / "config"),
    }
    options = ["--adapter", "caddyfile", "--config", str(path)]
    return Program([program, "run", *options], [program, "validate", *options], environment)


PROGRAMS = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}


@contextmanager
def started(name: str, directory: Path, ports: Sequence[int]) -> Iterator[Proxy]:
    """Its configuration was checked by itself before, as an operator would."""
    directory.mkdir()
    key, certificate = make_certificate(directory, HOST)
    proxy = Proxy(name, directory, certificate, free_port(), free_port())
    program = PROGRAMS[name](proxy, ports, key)
    environment = os.environ | dict(program.environment)
    checked = subprocess.run(
        program.check, env=environment, cwd=directory, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    log = directory / "own.log"
    with log.open("wb") as out:
        tied = shutil.which("setpriv")
        command = [*([tied, "--pdeathsig=TERM"] if tied else []), *program.run]
        process = subprocess.Popen(command, env=environment, cwd=directory, stdout=out, stderr=out)
    try:
        for port in (proxy.http, proxy.https):
            wait_until(lambda port=port: listens(process, port, log))  # type: ignore[misc]
        yield proxy
    finally:
        stop(process)


def listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
