import asyncio
import socket
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.startup import banner, prepare
from core.deadlines import patient
from core.process import end_on_hangup
from core.systemd import feed_watchdog, tell_ready
from core.uncaught import log_uncaught
from demo.past import DemoMakers
from serving.http.connections import raise_limit
from serving.metrics.collection import FigureCollection
from serving.server import UVICORN_OPTIONS, Server, take_port
from serving.workers.supervisor import Supervisor

GRACE_S = round(patient(10))
WATCHDOG_S = patient(10)


class Command(BaseCommand):
    help = "Serve REST, pages and streams with uvicorn. Outside production it prepares the database first."
    requires_system_checks = "__all__"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="Default: HOST, or 127.0.0.1.")
        parser.add_argument("--port", type=int, default=settings.PORT, help="Default: PORT, or 8000.")
        parser.add_argument(
            "--workers", type=int, default=1, help="Processes; more than one needs REDIS_URL."
        )

    def handle(self, *, host: str, port: int, workers: int, **options: Any) -> None:
        if workers < 1:
            raise CommandError("--workers is how many processes serve: 1 or more.")
        if workers > 1 and not settings.REDIS_URL:
            raise CommandError(
                "Several processes share their limits through Redis: set REDIS_URL, or use one worker."
            )
        log_uncaught()
        listener = take_port(host, port)
        self.stdout.write(raise_limit())
        makers = None
        try:
            prepared = prepare(self.stdout)
            makers = DemoMakers(self.stdout, prepared.makers)

            def announce() -> None:
                self.stdout.write(banner(host, listener.getsockname()[1], prepared))
                self.stdout.flush()
                tell_ready()
                makers.start()

            self.serve(listener, workers, announce, makers.stop)
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")
        finally:
            if makers is not None:
                makers.stop()
            listener.close()

    def serve(
        self, listener: socket.socket, workers: int, announce: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        config = uvicorn.Config(
            "config.asgi:application",
            workers=workers,
            loop="uvloop",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.TRUSTED_PROXIES),
            forwarded_allow_ips=settings.TRUSTED_PROXIES or None,
            timeout_graceful_shutdown=GRACE_S,
            **UVICORN_OPTIONS,
        )
        if workers > 1:
            stops_within_s = settings.DRAIN_S + max(GRACE_S, settings.STOP_WITHIN_S)
            Supervisor(config, listener, announce, stops_within_s, FigureCollection()).run()
            return

        def begin() -> None:
            announce()
            self.watchdog = asyncio.create_task(feed_watchdog(WATCHDOG_S), name="watchdog")

        end_on_hangup()
        # After SIGTERM it does not return: it ends as whoever sent that expects it to.
        server = Server(config, on_serving=begin, on_stopping=stop)
        server.run([listener])
        if not server.started:
            raise CommandError("The service did not start; the lines above say why.")
