import asyncio
import json
import traceback
from decimal import Decimal

import pytest

from sessions_app.llm.factory import ModelSpec, build_model
from sessions_app.llm.failures import ModelFailed
from sessions_app.llm.history import assistant_message, tool_result, user_message
from sessions_app.tools.definitions import ToolDef
from tests.sessions_app.llm.conftest import ask
from tests.sessions_app.llm.provider import anthropic_reply, chat, chat_call, responses_reply

KEY = "sk-very-secret-key-123456"
LOOKUP = ToolDef(
    "shop__lookup_order",
    "Looks up an order.",
    {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)
HELLO = [user_message("Hello")]


@pytest.fixture
def model(provider):
    return build_model(ModelSpec("openai:gpt-4o", KEY, f"{provider.address}/v1"))


async def test_text_comes_in_pieces_and_whole(provider, model, listener):
    provider.streams(*chat({"content": "Hel"}, {"content": "lo "}, {"content": "there."}))
    reply = await ask(model, HELLO, listener=listener)
    assert listener.of("text") == ["Hel", "lo ", "there."]
    assert reply.text == "Hello there."
    assert reply.calls == ()
    assert reply.finish_reason == "stop"


async def test_the_request_carries_key_instructions_tools_and_settings(provider, model):
    provider.streams(*chat({"content": "Hi"}))
    await ask(model, HELLO, [LOOKUP], temperature=0.5, script="not for the provider")
    request = provider.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["authorization"] == f"Bearer {KEY}"
    assert request["json"]["messages"][0]["content"] == "You handle refunds."
    assert request["json"]["messages"][-1] == {"role": "user", "content": "Hello"}
    assert request["json"]["tools"][0]["function"]["name"] == "shop__lookup_order"
    assert request["json"]["temperature"] == 0.5
    assert "script" not in request["json"]


async def test_tokens_are_priced_for_a_known_model(provider, model):
    provider.streams(*chat({"content": "Hi"}, usage=(1_000_000, 100_000)))
    reply = await ask(model, HELLO)
    assert (reply.input_tokens, reply.output_tokens) == (1_000_000, 100_000)
    assert reply.cost == Decimal("3.5")


@pytest.mark.parametrize(("model_name", "usage"), [("my-own-model", (10, 10)), ("gpt-4o", None)])
async def test_an_unknown_price_or_usage_costs_none_and_never_zero(
    provider, model, model_name, usage
):
    provider.streams(*chat({"content": "Hi"}, model=model_name, usage=usage))
    assert (await ask(model, HELLO)).cost is None


async def test_parallel_calls_keep_their_ids_and_their_text_exactly(provider, model):
    args = '{"order_id": "A-1042",  "amount": 184.90, "n": 123456789012345678901234567890}'
    provider.streams(
        *chat(
            {"content": "Looking."},
            *chat_call(0, "call_a", "shop__lookup_order", args[:9], args[9:30], args[30:]),
            *chat_call(1, "call_b", "shop__lookup_order", "{}"),
            finish="tool_calls",
        )
    )
    reply = await ask(model, HELLO, [LOOKUP])
    assert [call.call_id for call in reply.calls] == ["call_a", "call_b"]
    assert [call.args_json for call in reply.calls] == [args, "{}"]
    assert reply.text == "Looking."
    again = assistant_message(reply.response_json)
    assert again.parts[1].args == args


async def test_arguments_that_are_no_json_stay_as_they_are(provider, model):
    provider.streams(*chat(*chat_call(0, "a", "shop__lookup_order", '{"order_id": ')))
    assert (await ask(model, HELLO)).calls[0].args_json == '{"order_id": '


@pytest.mark.parametrize("ids", [("same", "same"), (None, None), ("", "")])
async def test_call_ids_are_made_unique_where_the_provider_did_not(provider, model, ids):
    deltas = [
        delta
        for index, call_id in enumerate(ids)
        for delta in chat_call(index, call_id, "shop__lookup_order", "{}")
    ]
    provider.streams(*chat(*deltas, finish="tool_calls"))
    reply = await ask(model, HELLO)
    made = [call.call_id for call in reply.calls]
    assert len(set(made)) == 2 and all(made)
    kept = assistant_message(reply.response_json)
    assert [part.tool_call_id for part in kept.parts] == made


async def test_a_call_id_of_an_earlier_reply_is_not_used_again(provider, model):
    provider.streams(*chat(*chat_call(0, "call_0", "shop__lookup_order", "{}")))
    first = await ask(model, HELLO)
    history = [
        *HELLO,
        assistant_message(first.response_json),
        tool_result("call_0", "shop__lookup_order", "{}", "completed"),
    ]
    second = await ask(model, history)
    assert first.calls[0].call_id == "call_0"
    assert second.calls[0].call_id != "call_0"


async def test_results_of_parallel_calls_follow_their_reply_in_one_request(provider, model):
    calls = [
        *chat_call(0, "a", "shop__lookup_order", "{}"),
        *chat_call(1, "b", "shop__lookup_order", "{}"),
    ]
    provider.streams(*chat(*calls))
    first = await ask(model, HELLO)
    provider.streams(*chat({"content": "Done."}))
    await ask(
        model,
        [
            *HELLO,
            assistant_message(first.response_json),
            tool_result("a", "shop__lookup_order", "found", "completed"),
            tool_result("b", "shop__lookup_order", "Rejected by Ada.", "rejected"),
            user_message("Hurry."),
        ],
    )
    sent = provider.requests[-1]["json"]["messages"]
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert "found" in sent[3]["content"] and sent[3]["tool_call_id"] == "a"
    assert "Rejected by Ada." in sent[4]["content"]


async def test_anthropic_streams_reasoning_text_and_calls(provider, listener):
    model = build_model(ModelSpec("anthropic:claude-sonnet-5-5", KEY, provider.address))
    provider.streams(*anthropic_reply(), named=True)
    reply = await ask(model, HELLO, [LOOKUP], listener=listener)
    assert listener.of("reasoning") == ["Which order? ", "A-1042."]
    assert listener.of("text") == ["I'll look ", "it up."]
    assert reply.reasoning == "Which order? A-1042."
    assert reply.calls[0].call_id == "toolu_1"
    assert json.loads(reply.calls[0].args_json) == {"order_id": "A-1042"}
    assert (reply.input_tokens, reply.output_tokens) == (50, 30)
    assert reply.cost is not None and reply.cost > 0
    assert provider.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert provider.requests[0]["path"].startswith("/v1/messages")


async def test_anthropic_gets_parallel_results_in_one_message(provider):
    model = build_model(ModelSpec("anthropic:claude-sonnet-5-5", KEY, provider.address))
    provider.streams(*anthropic_reply(), named=True)
    first = await ask(model, HELLO, [LOOKUP])
    result = tool_result("toolu_1", "shop__lookup_order", "no such order", "failed")
    await ask(model, [*HELLO, assistant_message(first.response_json), result], [LOOKUP])
    sent = provider.requests[-1]["json"]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[2]["content"][0]["is_error"] is True


async def test_the_responses_api_streams_too(provider, listener):
    model = build_model(ModelSpec("openai-responses:gpt-5.2", KEY, f"{provider.address}/v1"))
    provider.streams(*responses_reply(), named=True)
    reply = await ask(model, HELLO, listener=listener)
    assert provider.requests[0]["path"] == "/v1/responses"
    assert "".join(listener.of("text")) == reply.text == "Hello there."
    assert (reply.input_tokens, reply.output_tokens) == (12, 3)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "rejected", False),
        (401, "authentication", False),
        (403, "authentication", False),
        (404, "not_found", False),
        (408, "rejected", True),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (503, "overloaded", True),
        (529, "overloaded", True),
    ],
)
@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-5-5"])
async def test_a_refused_call_says_status_kind_and_whether_to_retry(
    provider, name, status, kind, retryable
):
    provider.fails(status, {"error": {"message": f"The key {KEY} is no good.", "type": "x"}})
    with pytest.raises(ModelFailed) as caught:
        await ask(build_model(ModelSpec(name, KEY, provider.address)), HELLO)
    failure = caught.value
    assert failure.status == status
    assert failure.retryable is retryable
    if status != 408:
        assert failure.kind == kind
    assert "is no good" in failure.message
    assert len(provider.requests) == 1, "the SDK must not retry by itself"


async def test_the_key_is_nowhere_in_a_failure(provider, model):
    provider.fails(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with pytest.raises(ModelFailed) as caught:
        await ask(model, HELLO)
    error = caught.value
    assert KEY not in "".join(traceback.format_exception(error))
    assert KEY not in repr(error) + str(error)
    assert error.__cause__ is None and error.__context__ is None


async def test_a_failure_says_how_long_the_provider_asked_to_wait(provider, model):
    provider.fails(429, {"error": {"message": "slow down"}}, retry_after="7")
    with pytest.raises(ModelFailed) as caught:
        await ask(model, HELLO)
    assert caught.value.retry_after == 7


async def test_a_server_that_is_away_is_a_connection_failure_worth_a_retry():
    model = build_model(ModelSpec("openai:gpt-4o", KEY, "http://127.0.0.1:9/v1"))
    with pytest.raises(ModelFailed) as caught:
        await ask(model, HELLO)
    assert (caught.value.kind, caught.value.status) == ("connection", None)
    assert caught.value.retryable


async def test_a_stream_cut_off_in_the_middle_fails_and_is_worth_a_retry(provider, model, listener):
    provider.streams(*list(chat({"content": "Hel"}))[:1])
    provider.cut_off = True
    with pytest.raises(ModelFailed) as caught:
        await ask(model, HELLO, listener=listener)
    assert caught.value.retryable
    assert caught.value.kind == "connection"


async def test_an_error_of_the_listener_is_not_the_models(provider, model):
    provider.streams(*chat({"content": "Hi"}))

    async def broken(kind: str, text: str) -> None:
        raise LookupError("no room for events")

    with pytest.raises(LookupError):
        await ask(model, HELLO, listener=broken)


async def test_a_canceled_call_ends_at_once():
    model = build_model(
        ModelSpec("demo:script", settings={"script": [{"text": "late", "delay": "30s"}]})
    )
    task = asyncio.create_task(ask(model, HELLO))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
