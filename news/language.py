"""Language models at an endpoint: asked for answers of a given shape, within limits, and never trusted."""

from typing import Annotated, Any, Literal

import msgspec

# An endpoint of a language model, and how each of the two protocols asks and answers there.
LONGEST_IDENTIFIER = 60
MAX_TOKENS = 4096
NAME = "answer"


class Endpoint(msgspec.Struct, frozen=True):
    protocol: Literal["openai", "anthropic"]
    base_url: str
    model: str
    key: str = ""
    timeout_s: float = 20.0
    daily_budget: int = 500

    @property
    def identifier(self) -> str:
        """As configured; shown on the items that the model scored and in `ai_models_available`."""
        return self.model[:LONGEST_IDENTIFIER]

    def fault(self) -> str:
        """What is wrong with the settings, in one sentence, or an empty text."""
        prefix = self.protocol.upper()
        if not self.base_url.startswith(("https://", "http://")):
            return f"{prefix}_BASE_URL should start with https:// or http://."
        if not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            return f"{prefix}_API_KEY has a character that cannot be part of it."
        if self.protocol == "anthropic" and not self.key:
            return "ANTHROPIC_MODEL is set, so ANTHROPIC_API_KEY is needed too."
        return ""


class LanguageFailed(Exception):
    """There is no answer; the message says why."""

    def __init__(self, why: str, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        """Seconds after which it makes sense to ask again; 0 if unknown."""
        self.is_lasting = is_lasting
        """Whether asking again at once would fail again."""


class OpenAi:
    """Chat completions, as OpenAI, vLLM, llama.cpp, Ollama and most others speak them."""

    def __init__(self, endpoint: Endpoint) -> None:
        base_url = endpoint.base_url.rstrip("/")
        self.model, self.url, self.list_url = (
            endpoint.model,
            f"{base_url}/chat/completions",
            f"{base_url}/models",
        )
        self.headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}

    def body(self, instructions: str, material: str, shape: type[msgspec.Struct]) -> dict[str, Any]:
        schema = {"name": NAME, "strict": True, "schema": without(NOT_IN_STRICT, schema_of(shape))}
        return {
            "model": self.model,
            "max_completion_tokens": MAX_TOKENS,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": material},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }

    def find_answer(self, body: bytes) -> bytes:
        content = msgspec.json.decode(body, type=Completion).choices[0].message.content
        if not content:
            raise LanguageFailed("the model refused to answer")
        return content.encode()


class Anthropic:
    """Messages with a single tool, which the model must use and which carries the schema."""

    def __init__(self, endpoint: Endpoint) -> None:
        base_url = f"{endpoint.base_url.rstrip('/').removesuffix('/v1')}/v1"
        self.model, self.url, self.list_url = endpoint.model, f"{base_url}/messages", f"{base_url}/models"
        self.headers = {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}

    def body(self, instructions: str, material: str, shape: type[msgspec.Struct]) -> dict[str, Any]:
        tool = {"name": NAME, "description": "Give the answer.", "input_schema": schema_of(shape)}
        return {
            "model": self.model,
            "max_tokens": MAX_TOKENS,
            "system": instructions,
            "messages": [{"role": "user", "content": material}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": NAME},
        }

    def find_answer(self, body: bytes) -> bytes:
        for block in msgspec.json.decode(body, type=AnthropicMessage).content:
            if block.type == "tool_use" and block.name == NAME:
                return bytes(block.input)
        raise LanguageFailed("the model refused to answer")


PROTOCOLS: dict[str, type[OpenAi] | type[Anthropic]] = {"openai": OpenAi, "anthropic": Anthropic}


class ReplyMessage(msgspec.Struct):
    content: str | None = None


class CompletionChoice(msgspec.Struct):
    message: ReplyMessage


class Completion(msgspec.Struct):
    choices: Annotated[list[CompletionChoice], msgspec.Meta(min_length=1)]


class Block(msgspec.Struct):
    type: str
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class AnthropicMessage(msgspec.Struct):
    content: list[Block]


# Strict modes refuse these keywords. The bounds hold all the same, because the answer is validated here.
NOT_IN_STRICT = {"minLength", "maxLength", "minItems", "maxItems", "title"}


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The root must be an object itself, not a reference to one."""
    (root,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = definitions.pop(root["$ref"].rpartition("/")[2])
    return schema | ({"$defs": definitions} if definitions else {})


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
