"""Builds a model from a name and a key that is handed over, never read from the environment.

Names are pydantic-ai's, `<provider>:<model>`, and two of ours: `demo:refund-desk` and
`demo:script`.

`openai:` means the Responses API, which is what pydantic-ai means by it and what OpenAI recommends.
With a `base_url` the server is some other one that speaks OpenAI's protocol, and those speak chat
completions: then `openai:` means chat completions. To say it outright, whatever the address:
`openai-chat:` or `openai-responses:`.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, parse_model_id
from pydantic_ai.providers import Provider, infer_provider_class

from sessions_app.llm.demo_models import build_demo_model
from sessions_app.tools.redaction import redact

#: Given outright, since the providers' SDKs would else take an address from our environment and
#: send the key there.
_OWN_ADDRESS = {
    "openai": "https://api.openai.com/v1",
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
_ADDRESS_PARAMETERS = ("base_url", "api_base", "azure_endpoint")

#: Stands for a key where a local server wants none; the OpenAI SDK insists on one.
_NO_KEY = "no-key-needed"


@dataclass(frozen=True)
class ModelSpec:
    """Which model to call and how.

    `settings` holds what is for building only: `script`, `model_call_index` and `word_delay` of the
    demo models. Sampling settings go to `stream_response`.
    """

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


class ModelUnavailable(Exception):
    """The model cannot be built as asked; `message` tells a person what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def build_model(spec: ModelSpec) -> Model:
    """The model the spec names, ready for `stream_response`. Raises `ModelUnavailable`."""
    provider_name, model_name = parse_model_id(spec.name)
    if not provider_name or not model_name:
        raise ModelUnavailable(
            f"{spec.name!r} is no model name; write provider:model, like openai:gpt-5.2."
        )
    if provider_name == "demo":
        return _demo(spec)
    provider = _provider(spec, provider_name)
    try:
        model = infer_model(
            f"{_kind(provider_name, spec.base_url)}:{model_name}", lambda _: provider
        )
    except (UserError, ImportError, ValueError) as error:
        raise ModelUnavailable(
            f"The model {spec.name} cannot be used: {_first_line(error, spec)}"
        ) from None
    model._dexweb_key = spec.api_key  # type: ignore[attr-defined]
    return model


def secret_of(model: Model) -> str:
    """The key a model was built with, so that errors can be cleaned of it; empty for a model built
    elsewhere.
    """
    return str(getattr(model, "_dexweb_key", ""))


def _demo(spec: ModelSpec) -> Model:
    try:
        return build_demo_model(spec.name, spec.settings)
    except ValueError as error:
        raise ModelUnavailable(str(error)) from None


def _kind(provider_name: str, base_url: str) -> str:
    return "openai-chat" if provider_name == "openai" and base_url else provider_name


def _provider(spec: ModelSpec, provider_name: str) -> Provider[Any]:
    try:
        provider_class = infer_provider_class(provider_name)
    except ValueError:
        raise ModelUnavailable(
            f"There is no provider called {provider_name!r} (in {spec.name!r})."
        ) from None
    except ImportError as error:
        raise ModelUnavailable(
            f"The provider {provider_name} is not installed here: {error}"
        ) from None
    options = _provider_options(spec, provider_name, provider_class)
    try:
        return provider_class(**options)
    except (UserError, ValueError, TypeError) as error:
        raise ModelUnavailable(
            f"The provider {provider_name} cannot be used: {_first_line(error, spec)}"
        ) from None


def _provider_options(
    spec: ModelSpec, provider_name: str, provider_class: type[Provider[Any]]
) -> dict[str, str]:
    taken = inspect.signature(provider_class.__init__).parameters
    if "api_key" not in taken:
        raise ModelUnavailable(
            f"The provider {provider_name} takes no API key, so it cannot be used here."
        )
    options = {}
    address = spec.base_url or _OWN_ADDRESS.get(provider_name, "")
    if address:
        parameter = next((name for name in _ADDRESS_PARAMETERS if name in taken), None)
        if parameter is None:
            raise ModelUnavailable(
                f"The provider {provider_name} takes no base URL of its own; leave it empty."
            )
        options[parameter] = address
    if not spec.api_key and not spec.base_url:
        raise ModelUnavailable(
            f"{spec.name} needs a key for the provider {provider_name}:"
            " choose a Credential for this agent."
        )
    options["api_key"] = spec.api_key or _NO_KEY
    return options


def _first_line(error: BaseException, spec: ModelSpec) -> str:
    words = (str(error) or type(error).__name__).splitlines()[0]
    return redact(words, spec.api_key)
