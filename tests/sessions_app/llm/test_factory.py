import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from sessions_app.llm.factory import ModelSpec, ModelUnavailable, build_model

KEY = "sk-very-secret-key-123456"


def test_openai_speaks_the_responses_api_to_openai_itself():
    model = build_model(ModelSpec("openai:gpt-5.2", KEY))
    assert isinstance(model, OpenAIResponsesModel)
    assert model.base_url.startswith("https://api.openai.com/v1")


def test_openai_with_a_base_url_speaks_chat_completions():
    model = build_model(ModelSpec("openai:llama-4", KEY, "http://127.0.0.1:9/v1"))
    assert isinstance(model, OpenAIChatModel)
    assert model.base_url.startswith("http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai-chat:gpt-5.2", OpenAIChatModel),
        ("openai-responses:gpt-5.2", OpenAIResponsesModel),
        ("anthropic:claude-sonnet-5-5", AnthropicModel),
    ],
)
def test_a_name_that_says_its_protocol_keeps_it_whatever_the_address(name, kind):
    assert isinstance(build_model(ModelSpec(name, KEY)), kind)
    assert isinstance(build_model(ModelSpec(name, KEY, "http://127.0.0.1:9")), kind)


def test_the_environment_gives_neither_key_nor_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://evil.example/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://evil.example")
    with pytest.raises(ModelUnavailable):
        build_model(ModelSpec("openai:gpt-5.2"))
    for name in ("openai:gpt-5.2", "openai-chat:gpt-5.2", "anthropic:claude-sonnet-5-5"):
        assert "evil" not in build_model(ModelSpec(name, KEY)).base_url
    local = build_model(ModelSpec("openai:llama-4", base_url="http://127.0.0.1:9/v1"))
    assert local.client.api_key != "sk-of-somebody-else"


@pytest.mark.parametrize("name", ["openai:gpt-5.2", "anthropic:claude-sonnet-5-5", "deepseek:chat"])
def test_a_missing_key_names_the_provider_and_asks_for_a_credential(name):
    with pytest.raises(ModelUnavailable) as caught:
        build_model(ModelSpec(name))
    assert name.partition(":")[0] in caught.value.message
    assert "Credential" in caught.value.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5.2", "provider:model"),
        ("", "provider:model"),
        ("openai:", "provider:model"),
        ("nosuch:model", "'nosuch'"),
        ("google:gemini-3", "not installed"),
        ("demo:nothing", "demo:refund-desk"),
        ("demo:script", "at least one entry"),
    ],
)
def test_a_model_that_cannot_be_built_says_why(name, words):
    with pytest.raises(ModelUnavailable) as caught:
        build_model(ModelSpec(name, KEY))
    assert words in caught.value.message
    assert KEY not in str(caught.value)


def test_the_key_is_in_no_repr():
    spec = ModelSpec("openai:gpt-5.2", KEY)
    assert KEY not in repr(spec)
    assert KEY not in repr(build_model(spec))


def test_a_base_url_for_a_provider_without_one_is_refused():
    with pytest.raises(ModelUnavailable, match="no base URL"):
        build_model(ModelSpec("deepseek:chat", KEY, "http://127.0.0.1:9"))
