"""A mail server on loopback that keeps what it takes, and says what a test wants it to say."""

from __future__ import annotations

import email
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.policy import default

GOOD = {"EHLO": "250-here\r\n250 AUTH PLAIN", "AUTH": "235 welcome", "RCPT": "250 ok", "DATA": "354 go on"}
LINK = re.compile(r"https?://\S+")


class MailServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), MailSession)
        self.answers = GOOD | answers
        self.mails: list[str] = []
        self.refuses = False
        """Whether it refuses each mail, and repeats the links that are in it."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def links(self) -> list[str]:
        """Of all mails, in their order."""
        return [link for mail in self.mails for link in links_in(mail)]


def links_in(mail: str) -> list[str]:
    text = email.message_from_string(mail, policy=default).get_body(("plain",))
    return LINK.findall(text.get_content()) if text else []


class MailSession(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say(self.server.answers.get("", "220 here"))
        while line := self.rfile.readline().decode():
            verb = line[:4].upper().strip()
            self._say(self.server.answers.get(verb, "250 ok"))
            if verb == "DATA":
                self._take("".join(self._lines()))
            if verb == "QUIT":
                return

    def _lines(self) -> Iterator[str]:
        while (line := self.rfile.readline().decode()) not in (".\r\n", ""):
            yield line

    def _take(self, mail: str) -> None:
        self.server.mails.append(mail)
        refusal = f"554 refused for what it holds: {' '.join(links_in(mail))}"
        self._say(refusal if self.server.refuses else "250 taken")

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
