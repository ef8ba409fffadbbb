"""One table from what a provider's SDK raises to what our Flow decides on."""

from typing import Literal

from pydantic_ai import exceptions

from sessions_app.tools.redaction import redact

FailureKind = Literal[
    "rate_limited",
    "quota_exceeded",
    "overloaded",
    "server_error",
    "timeout",
    "connection",
    "authentication",
    "not_found",
    "context_too_long",
    "rejected",
    "content_filtered",
    "bad_response",
    "unknown",
]

#: The provider refused or never had the request; the others may have been worked on, and billed.
_NOT_BILLED = {
    "rate_limited",
    "quota_exceeded",
    "overloaded",
    "authentication",
    "not_found",
    "context_too_long",
    "rejected",
}
_LONGEST = 1000

#: First match wins, so the narrower class stands above the wider. Third: what a person is told.
_TABLE: tuple[tuple[type[Exception], FailureKind, bool, str], ...] = (
    (exceptions.ModelRateLimitError, "rate_limited", True, "The provider's rate limit is reached"),
    (
        exceptions.ModelQuotaExceededError,
        "quota_exceeded",
        False,
        "The account's quota or credit is used up",
    ),
    (
        exceptions.ModelUnavailableError,
        "overloaded",
        True,
        "The provider is overloaded or unavailable",
    ),
    (exceptions.ModelServerError, "server_error", True, "The provider had an error of its own"),
    (exceptions.ModelRequestTimeout, "timeout", True, "The model gave no answer in time"),
    (exceptions.ModelTimeoutError, "timeout", True, "The model gave no answer in time"),
    (exceptions.ModelConnectionError, "connection", True, "The provider could not be reached"),
    (exceptions.ModelAuthenticationError, "authentication", False, "The provider refused the key"),
    (
        exceptions.ModelNotFoundError,
        "not_found",
        False,
        "The provider knows no such model or address",
    ),
    (
        exceptions.ModelContextWindowExceededError,
        "context_too_long",
        False,
        "The conversation is too long for it",
    ),
    (exceptions.ModelRequestRejectedError, "rejected", False, "The provider refused the request"),
    (
        exceptions.ContentFilterError,
        "content_filtered",
        False,
        "The provider's content filter stopped the answer",
    ),
    (exceptions.UnexpectedModelBehavior, "bad_response", True, "The answer could not be read"),
    (exceptions.UserError, "rejected", False, "The request does not suit this model"),
)
_RETRYABLE_STATUS = {408, 409, 425, 429}


class ModelFailed(Exception):
    """A model call that gave no reply.

    `status` is the provider's HTTP status or None; `retryable` whether the same call may do better
    later; `retry_after` the seconds the provider asked us to wait, or None. `message` holds no key.
    """

    def __init__(
        self,
        message: str,
        status: int | None,
        retryable: bool,
        kind: FailureKind,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retryable = retryable
        self.kind = kind
        self.retry_after = retry_after

    @property
    def billed(self) -> bool:
        """Whether the provider may bill it all the same."""
        return self.kind not in _NOT_BILLED


def classify(error: Exception, secret: str) -> ModelFailed:
    """What an error of a model call means; `secret` is taken out of the words."""
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
    retry_after = error.retry_after if isinstance(error, exceptions.ModelAPIError) else None
    kind, retryable, said = _kind(error, status)
    detail = redact(_detail(error), secret)[:_LONGEST]
    where = f" (HTTP {status})" if status is not None else ""
    message = f"{said}{where}: {detail}" if detail else f"{said}{where}."
    return ModelFailed(message, status, retryable, kind, retry_after)


def _kind(error: Exception, status: int | None) -> tuple[FailureKind, bool, str]:
    for error_class, kind, retryable, said in _TABLE:
        if isinstance(error, error_class):
            return kind, retryable or status in _RETRYABLE_STATUS, said
    if isinstance(error, TimeoutError):
        return "timeout", True, "The model gave no answer in time"
    if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
        "httpx",
        "httpx2",
        "httpcore2",
    ):
        return "connection", True, "The connection to the provider broke"
    if status is not None:
        return (
            "unknown",
            status >= 500 or status in _RETRYABLE_STATUS,
            "The provider answered with an error",
        )
    return "unknown", False, "The model call failed"


def _detail(error: Exception) -> str:
    """The provider's own sentence where there is one, else the error's."""
    body = getattr(error, "body", None)
    for _ in range(2):
        if isinstance(body, dict):
            inner = body.get("error")
            if isinstance(inner, dict | str):
                body = inner
                continue
            body = body.get("message") or body
            break
    if isinstance(body, str) and body.strip():
        return body.strip()
    if isinstance(error, exceptions.ModelHTTPError):
        return str(body) if body else ""
    return str(getattr(error, "message", "") or error).strip() or type(error).__name__
