"""A mail server on loopback, which keeps what it takes; told to, it refuses mails and repeats their links."""

from __future__ import annotations

import email
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.policy import default

LINK = re.compile(r"https?://\S+")


class MailServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), MailSession)
        self.links: list[str] = []
        self.refuses = False

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.server_address[1]}"


class MailSession(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 ready")
        for line in self.rfile:
            match line[:4].upper().strip():
                case b"DATA":
                    self._say("354 go on")
                    self._take(b"".join(iter(self.rfile.readline, b".\r\n")))
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 fine")

    def _take(self, raw: bytes) -> None:
        text = email.message_from_bytes(raw, policy=default).get_body(("plain",))
        links = LINK.findall(text.get_content()) if text else []
        self.server.links += links
        self._say(f"554 refused for what it holds: {' '.join(links)}" if self.server.refuses else "250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
