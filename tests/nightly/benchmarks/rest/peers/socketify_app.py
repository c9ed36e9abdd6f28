"""`PORT`: HTTP of uWebSockets in C++ under socketify."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from socketify import App

from .raw import Recorded, admit, bars, quote


def answer(recorded: Recorded, response: Any, request: Any) -> None:
    window = admit(request.get_header("x-api-key"))
    if window is None:
        response.write_status(401).end("")
        return
    for name, value in recorded.headers(window):
        response.write_header(name, value)
    response.end(recorded.body)


def main() -> None:
    app: Any = App()
    app.get("/api/market/:symbol/quote", partial(answer, quote))
    app.get("/api/market/:symbol", partial(answer, bars))
    app.listen({"port": int(sys.argv[1]), "host": "127.0.0.1"}, lambda config: None)
    app.run()


if __name__ == "__main__":
    main()
