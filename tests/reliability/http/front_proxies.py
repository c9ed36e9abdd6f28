"""nginx and haproxy in front of one server, with one connection to it that all clients share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import wait_until
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.processes import listens, logged

NGINX = """
daemon off; worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/nginx.log; {user}
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream service {{ server 127.0.0.1:{upstream}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://service; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_connect_timeout 300s; proxy_read_timeout 300s; proxy_send_timeout 300s;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"""
HAPROXY = """
global
  nbthread 1
defaults
  mode http
  timeout connect 300s
  timeout client 300s
  timeout server 300s
frontend clients
  bind 127.0.0.1:{port}
  default_backend service
backend service
  http-reuse always
  # A connection may close in the moment in which it is chosen.
  retry-on conn-failure empty-response
  server one 127.0.0.1:{upstream} pool-max-conn 1
"""


@contextmanager
def nginx(directory: Path, upstream: int) -> Iterator[int]:
    user = "user root;" if os.geteuid() == 0 else ""
    options = ("-p", str(directory), "-c")
    with proxy("nginx", "nginx-light", NGINX, options, directory, upstream, user) as port:
        yield port


@contextmanager
def haproxy(directory: Path, upstream: int) -> Iterator[int]:
    with proxy("haproxy", "haproxy", HAPROXY, ("-db", "-f"), directory, upstream) as port:
        yield port


@contextmanager
def proxy(
    program: str,
    package: str,
    settings: str,
    options: tuple[str, ...],
    directory: Path,
    upstream: int,
    user: str = "",
) -> Iterator[int]:
    path, port = require_debian(program, package), free_port()
    file, log = directory / f"{program}-{port}.conf", directory / f"{program}-{port}.out"
    file.write_text(settings.format(directory=directory, port=port, upstream=upstream, user=user))
    with logged([path, *options, str(file)], log) as process:
        wait_until(lambda: listens(process, port, log))
        yield port
