"""A proxy on loopback with the faults that proxies have. It calls the service from an address of its own, so
that the service can tell it from its clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.programs.tls_front import tls_front

PROXY = "127.0.0.2"
CLIENT = "127.0.0.1"
BYTES = 65_536


@dataclass(frozen=True)
class Manner:
    """What a proxy does; by default all of it is right, but for TLS, which needs a certificate."""

    names_client: bool = True
    passes_claims: bool = False
    """The X-Forwarded-For of a client goes on as it is, with nothing added."""
    proto: str = "https"
    host: str = ""
    """Another one than the client named."""
    upgrades: bool = True
    holds_back: bool = False
    """No frame of a stream goes to the client."""
    cuts_off: bool = False
    """A stream ends when its first frame has passed."""
    answer: bytes = b""
    """Instead of asking the service."""


class FakeProxy:
    def __init__(self, upstream: int, manner: Manner) -> None:
        self._upstream, self._manner = upstream, manner
        self._listener = socket.create_server((CLIENT, 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(PATIENCE_S)
            head = self._read_head(client)
            if self._manner.answer:
                client.sendall(self._manner.answer)
                return
            address = (CLIENT, self._upstream)
            with socket.create_connection(address, source_address=(PROXY, 0)) as service:
                service.settimeout(PATIENCE_S)
                service.sendall(self._changed(head))
                self._join(client, service, is_stream=b"/ws/" in head.partition(b"\r\n")[0])

    def _read_head(self, client: socket.socket) -> bytes:
        head = b""
        while b"\r\n\r\n" not in head and (more := client.recv(BYTES)):
            head += more
        return head

    def _changed(self, head: bytes) -> bytes:
        manner = self._manner
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = [
            (name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        dropped = {"x-forwarded-proto"} | ({"host"} if manner.host else set())
        if not manner.upgrades:
            dropped |= {"upgrade", "connection"}
        claimed = [value for name, value in headers if name == "x-forwarded-for"]
        kept = [each for each in headers if each[0] not in dropped | {"x-forwarded-for"}]
        if not manner.upgrades:
            kept.append(("connection", "close"))
        if manner.host:
            kept.append(("host", manner.host))
        if manner.passes_claims and claimed:
            kept.append(("x-forwarded-for", claimed[0]))
        elif manner.names_client:
            kept.append(("x-forwarded-for", ", ".join([*claimed, CLIENT])))
        if manner.proto:
            kept.append(("x-forwarded-proto", manner.proto))
        return "\r\n".join([first, *(f"{name}: {value}" for name, value in kept), "", ""]).encode("latin-1")

    def _join(self, client: socket.socket, service: socket.socket, *, is_stream: bool) -> None:
        """Both ways, until one side ends."""
        back = threading.Thread(target=self._copy, args=(client, service))
        back.start()
        (self._copy_stream if is_stream else self._copy)(service, client)
        for side in (client, service):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        back.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(BYTES):
                target.sendall(data)

    def _copy_stream(self, service: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            head = self._read_head(service)
            handshake, end, frames = head.partition(b"\r\n\r\n")
            client.sendall(handshake + end)
            if self._manner.holds_back:
                while service.recv(BYTES):
                    pass
                return
            client.sendall(frames or service.recv(BYTES))
        if not self._manner.cuts_off:
            self._copy(service, client)


@contextmanager
def fake_proxy(
    upstream: int, certificate: tuple[Path, Path] | None = None, **manner: object
) -> Iterator[str]:
    """Its address, in front of the port of a service."""
    proxy = FakeProxy(upstream, Manner(**manner))  # type: ignore[arg-type]
    try:
        if certificate:
            # Two threads on one TLS connection, as those of the proxy are, may lose what they send.
            with tls_front(proxy.port, *certificate) as url:
                yield url
        else:
            yield f"http://{CLIENT}:{proxy.port}"
    finally:
        proxy.stop()
