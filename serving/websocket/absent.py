"""Answers to requests for a stream that does not exist, or without the WebSocket protocol."""

from typing import Any

from core.contract.errors import ApiError, NotFound, new_request_id, refusal_answer
from serving.api_handler import send_response

# Of ASGI: a handshake is answered like any other request.
HTTP_RESPONSE = "websocket.http.response"


class NoStream(NotFound):
    message = "There is no stream at this path. /docs/streams lists all of them."


class NeedsWebSocket(ApiError):
    """As the server itself refuses a handshake in another version."""

    status_code, code = 426, "invalid_upgrade"
    message = "This path is a stream: connect to it with a WebSocket client. /docs/streams shows how."

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"Upgrade": "websocket", "Connection": "Upgrade"}


async def refuse_stream(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if HTTP_RESPONSE not in (scope.get("extensions") or {}):
        # Such a server makes a bare 403 of it.
        await send({"type": "websocket.close"})
        return

    async def send_instead(message: dict[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    response = refusal_answer(NoStream(), new_request_id()).as_response("GET", {})
    await send_response(response, receive, send_instead)


async def ask_for_websocket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    answer = refusal_answer(NeedsWebSocket(), new_request_id())
    await send_response(answer.as_response(scope["method"], {}), receive, send)
