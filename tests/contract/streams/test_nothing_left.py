"""What a socket held is given back when it ends, without waiting until garbage is collected: with
thousands of sockets open, that holds everybody up."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings
from redis import Redis
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from core.events.event_feed import GROUP
from market.streams.authenticated import Identity
from market.streams.hub.subscribers import Subscriber
from market.streams.protocol.messages import KINDS, ONE_SOCKET
from serving.websocket.protocol import WebSocketProtocol
from tests.client import Server, drop_sockets
from tests.patience import wait_until

from .client import Socket
from .conftest import Open

pytestmark = pytest.mark.served

OF_A_SOCKET = (WebSocketProtocol, AsyncWebsocketConsumer, Subscriber, Identity, HttpToolsProtocol)
PATHS = [ONE_SOCKET, *(kind.path for kind in KINDS)]
End = Callable[[Server, Socket], object]


def there() -> Counter[str]:
    return Counter(
        # Not `isinstance`, which would wake lazy objects.
        kind.__name__
        for each in gc.get_objects()
        for kind in OF_A_SOCKET
        if issubclass(type(each), kind)
    )


@pytest.fixture(autouse=True)
def nobody_collects() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left(server: Server, socket: Socket) -> None:
    socket.connection.close()


def cut(server: Server, socket: Socket) -> None:
    drop_sockets(server)


def refused(server: Server, socket: Socket) -> None:
    socket.send({"action": "list", "stream": "market", "api_key": "wrong"})
    socket.refused()


@pytest.mark.parametrize("ended", [left, cut, refused])
@pytest.mark.parametrize("path", PATHS)
def test_ended_socket_leaves_nothing(
    service: Server, opened: Open, key: str, symbol: str, path: str, ended: End
) -> None:
    wait_until(lambda: not service.state.connections)
    before = there()
    socket = opened(path, key=key)
    socket.subscribe(symbol, stream="market")
    assert len(service.state.connections) == 1
    ended(service, socket)
    # What another test had just closed may have been there before, and is gone now.
    wait_until(lambda: there() <= before)


@pytest.mark.parametrize("path", PATHS)
def test_open_socket_keeps_neither_scope_nor_headers(opened: Open, key: str, symbol: str, path: str) -> None:
    # Other tests may keep scopes that they made themselves.
    before = scopes()
    opened(path, key=key).subscribe(symbol, stream="market")
    known = set(map(id, before))
    assert not [each for each in scopes() if id(each) not in known]


def scopes() -> list[dict[str, Any]]:
    return [each for each in gc.get_objects() if type(each) is dict and each.get("type") == "websocket"]


def test_no_socket_is_a_member_of_a_channel_layer_that_it_could_leave_behind(
    opened: Open, key: str, symbol: str
) -> None:
    opened(key=key).subscribe(symbol)
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer):
        assert set(layer.groups) <= {GROUP}
    if settings.REDIS_URL:
        with Redis.from_url(settings.REDIS_URL) as client:
            assert {name.partition(b":")[0] for name in client.scan_iter()} == {b"tickwire"}
