from __future__ import annotations

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.nightly.benchmarks.streams.peers.channels_tutorial.settings"

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.urls import re_path  # noqa: E402

django_application = get_asgi_application()

from .consumers import TickConsumer  # noqa: E402

routes = URLRouter([re_path(r"", TickConsumer.as_asgi())])
application = ProtocolTypeRouter({"http": django_application, "websocket": routes})
