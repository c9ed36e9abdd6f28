"""A mail server on loopback that says what a test wants it to say."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

GOOD = {"EHLO": "250-here\r\n250 AUTH PLAIN", "AUTH": "235 welcome", "RCPT": "250 ok", "DATA": "354 go on"}


class MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), MailSession)
        self.answers = GOOD | answers
        self.mails: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class MailSession(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say(self.server.answers.get("", "220 here"))
        while line := self.rfile.readline().decode():
            verb = line[:4].upper().strip()
            self._say(self.server.answers.get(verb, "250 ok"))
            if verb == "DATA":
                self.server.mails.append("".join(self._lines()))
                self._say("250 taken")
            if verb == "QUIT":
                return

    def _lines(self) -> Iterator[str]:
        while (line := self.rfile.readline().decode()) not in (".\r\n", ""):
            yield line

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server(**answers: str) -> Iterator[MailServer]:
    """`RCPT="550 no"`: another answer to that verb; `greeting` is what it says first."""
    greeting = answers.pop("greeting", "220 here")
    with MailServer({"": greeting} | answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
