"""Starlette without anything above it, and nothing to encode."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .raw import Recorded, admit, bars, quote


def answer(recorded: Recorded, request: Request) -> Response:
    window = admit(request.headers.get("x-api-key"))
    if window is None:
        return Response(status_code=401)
    return Response(recorded.body, headers=dict(recorded.headers(window)))


async def get_quote(request: Request) -> Response:
    return answer(quote, request)


async def get_market(request: Request) -> Response:
    return answer(bars, request)


app = Starlette(
    routes=[Route("/api/market/{symbol}/quote", get_quote), Route("/api/market/{symbol}", get_market)]
)
