"""What the API refuses and how it says so; `config/errors.py` turns these into the one error body."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework.exceptions import APIException


class ApiError(APIException):
    """A refusal with a stable code."""

    status_code = 400
    code = "invalid_parameter"
    message = ""

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        allowed: Sequence[str] | None = None,
        max: int | None = None,  # noqa: A002 - the name on the wire
    ) -> None:
        self.message = message or self.message
        self.field, self.allowed, self.max = field, allowed, max
        self.headers: dict[str, str] = {}
        super().__init__(self.message, self.code)


class MissingApiKey(ApiError):
    status_code, code = 401, "missing_api_key"
    message = "Send your API key in the X-API-Key header."


class InvalidApiKey(ApiError):
    status_code, code = 401, "invalid_api_key"
    message = "This API key is not valid. Check it for typos, or issue a new one in the settings panel."


class HttpsRequired(ApiError):
    status_code, code = 403, "https_required"
    message = "This key came without TLS and may have been read. Use https:// or wss://, and issue a new key."


class SymbolNotFound(ApiError):
    status_code, code = 404, "symbol_not_found"


class NotFound(ApiError):
    status_code, code = 404, "not_found"
    message = "There is nothing at this path. GET /openapi.json lists what there is."


class MethodNotAllowed(ApiError):
    status_code, code = 405, "method_not_allowed"
    message = "This path answers GET, HEAD and OPTIONS."


class InvalidParameter(ApiError):
    status_code, code = 400, "invalid_parameter"


class InvalidTimeframe(InvalidParameter):
    code = "invalid_timeframe"


class ParameterOutOfRange(InvalidParameter):
    code = "parameter_out_of_range"


class RetryLater(ApiError):
    """A refusal that waiting cures; `retry_after` is in whole seconds."""

    def __init__(self, message: str = "", *, retry_after: int) -> None:
        super().__init__(message)
        self.headers["Retry-After"] = str(max(1, retry_after))


class RateLimitExceeded(RetryLater):
    status_code, code = 429, "rate_limit_exceeded"


class AiQuotaExceeded(RetryLater):
    status_code, code = 429, "ai_quota_exceeded"


class QuoteUnavailable(RetryLater):
    status_code, code = 503, "quote_unavailable"


class ModelUnavailable(RetryLater):
    status_code, code = 503, "model_unavailable"


class Overloaded(RetryLater):
    status_code, code = 503, "overloaded"
    message = "The service is busy. Try again shortly."
