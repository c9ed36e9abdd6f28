"""The requests of the two supported protocols, and where their responses hold the answer."""

from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec

from .endpoint import Endpoint, LanguageFailed

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
    """Messages with a single tool, which the model must use and which carries the schema."""

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
        for block in _decoded(body, AnthropicMessage).content:
            if block.type == "tool_use" and block.name == NAME:
                return bytes(block.input)
        raise LanguageFailed("the model refused to answer")


class Said(msgspec.Struct):
    content: str | None = None


class CompletionChoice(msgspec.Struct):
    message: Said


class Completion(msgspec.Struct):
    choices: Annotated[list[CompletionChoice], msgspec.Meta(min_length=1)]


class Block(msgspec.Struct):
    type: str
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class AnthropicMessage(msgspec.Struct):
    content: list[Block]


def _decoded(body: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(body, type=kind)


def _without_version(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1")


# Strict modes refuse these keywords. The bounds hold all the same, because the answer is validated here.
NOT_IN_STRICT = {"minLength", "maxLength", "minItems", "maxItems", "title"}


def schema_of(shape: type[msgspec.Struct], *, strict: bool) -> dict[str, Any]:
    """The root must be an object itself, not a reference to one."""
    (root,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    schema = definitions.pop(name)
    whole = schema | ({"$defs": definitions} if definitions else {})
    plain: dict[str, Any] = without(NOT_IN_STRICT, whole) if strict else whole
    return plain


def without(unwanted: set[str], schema: Any) -> Any:
    """Drops the keywords, but keeps properties of the same name."""
    if isinstance(schema, list):
        return [without(unwanted, part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in unwanted}
    named = {"properties", "$defs"}
    return {
        name: {key: without(unwanted, part) for key, part in value.items()}
        if name in named
        else without(unwanted, value)
        for name, value in kept.items()
    }


DIALECTS: dict[str, Dialect] = {"openai": OpenAi(), "anthropic": Anthropic()}
