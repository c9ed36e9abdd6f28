"""What is sent to an endpoint and where in its answer the answer is, in the two protocols there are."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec

from .endpoint import Endpoint
from .problem import LanguageFailed
from .schema import schema_of

T = TypeVar("T")

MAX_TOKENS = 4096
NAME = "answer"


class Call(NamedTuple):
    url: str
    headers: dict[str, str]
    body: dict[str, Any]


class Dialect(Protocol):
    def call(
        self, endpoint: Endpoint, instructions: str, material: str, shape: type[msgspec.Struct]
    ) -> Call: ...

    def list_url(self, endpoint: Endpoint) -> str: ...

    def headers(self, endpoint: Endpoint) -> dict[str, str]: ...

    def find_answer(self, body: bytes) -> bytes: ...


class OpenAi:
    """Chat completions, as OpenAI, vLLM, llama.cpp, Ollama and most others speak them."""

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}

    def list_url(self, endpoint: Endpoint) -> str:
        return f"{endpoint.base_url.rstrip('/')}/models"

    def call(self, endpoint: Endpoint, instructions: str, material: str, shape: type[msgspec.Struct]) -> Call:
        schema = {"name": NAME, "strict": True, "schema": schema_of(shape, strict=True)}
        body = {
            "model": endpoint.model,
            "max_completion_tokens": MAX_TOKENS,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": material},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        return Call(f"{endpoint.base_url.rstrip('/')}/chat/completions", self.headers(endpoint), body)

    def find_answer(self, body: bytes) -> bytes:
        content = _decoded(body, Completion).choices[0].message.content
        if not content:
            raise LanguageFailed("the model refused to answer")
        return content.encode()


class Anthropic:
    """Messages. The one tool that the model has to use carries the schema."""

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}

    def list_url(self, endpoint: Endpoint) -> str:
        return f"{_without_version(endpoint.base_url)}/v1/models"

    def call(self, endpoint: Endpoint, instructions: str, material: str, shape: type[msgspec.Struct]) -> Call:
        tool = {
            "name": NAME,
            "description": "Give the answer.",
            "input_schema": schema_of(shape, strict=False),
        }
        body = {
            "model": endpoint.model,
            "max_tokens": MAX_TOKENS,
            "system": instructions,
            "messages": [{"role": "user", "content": material}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": NAME},
        }
        return Call(f"{_without_version(endpoint.base_url)}/v1/messages", self.headers(endpoint), body)

    def find_answer(self, body: bytes) -> bytes:
        for block in _decoded(body, Message).content:
            if block.type == "tool_use" and block.name == NAME:
                return bytes(block.input)
        raise LanguageFailed("the model refused to answer")


class Said(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    message: Said


class Completion(msgspec.Struct):
    choices: Annotated[list[Choice], msgspec.Meta(min_length=1)]


class Block(msgspec.Struct):
    type: str
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class Message(msgspec.Struct):
    content: list[Block]


DIALECTS: dict[str, Dialect] = {"openai": OpenAi(), "anthropic": Anthropic()}


def _decoded(body: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(body, type=kind)


def _without_version(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1")
