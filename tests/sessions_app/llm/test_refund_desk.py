import json

import pytest

from sessions_app.llm.factory import ModelSpec, build_model
from sessions_app.llm.history import assistant_message, tool_result, user_message
from sessions_app.tools.definitions import ToolDef
from sessions_app.tools.shop.ledger import Ledger, ShopError
from sessions_app.tools.shop.server import Shop
from tests.sessions_app.llm.conftest import ask

TOOLS = [
    ToolDef(f"shop__{tool}", "", {"type": "object"})
    for tool in ("lookup_order", "search_policy", "issue_refund", "send_email")
]


class Desk:
    """A conversation with the refund desk, its calls made against a real shop."""

    def __init__(self, tmp_path, tools=TOOLS, **refund):
        self.model = build_model(ModelSpec("demo:refund-desk", settings={"word_delay": 0}))
        self.shop = Shop(Ledger(tmp_path / "shop.sqlite3"), {})
        self.tools = tools
        self.history = []
        self.replies = []
        self.refund = refund

    async def says(self, text: str) -> str:
        """Says something and plays the turn to its end; gives the final words."""
        self.history.append(user_message(text))
        for _ in range(8):
            reply = await ask(self.model, self.history, self.tools)
            self.replies.append(reply)
            self.history.append(assistant_message(reply.response_json))
            if not reply.calls:
                return reply.text
            for call in reply.calls:
                content, outcome = await self._run(call)
                self.history.append(tool_result(call.call_id, call.tool, content, outcome))
        raise AssertionError("the desk never ends its turn")

    async def _run(self, call):
        tool = call.tool.removeprefix("shop__")
        if tool == "issue_refund" and self.refund:
            return self.refund["content"], self.refund["outcome"]
        try:
            answer = await self.shop.call(tool, json.loads(call.args_json), call.call_id)
        except ShopError as error:
            return str(error), "failed"
        return json.dumps(answer), "completed"

    def calls(self, reply: int) -> list[tuple[str, dict]]:
        return [
            (call.tool.removeprefix("shop__"), json.loads(call.args_json))
            for call in self.replies[reply].calls
        ]


async def test_the_desk_looks_up_refunds_explains_and_confirms(tmp_path):
    desk = Desk(tmp_path)
    final = await desk.says("Orders A-1042 and A-0977 came late. Please write to the customer.")
    assert desk.replies[0].text == "I'll look at orders A-1042 and A-0977 and the policy first."
    assert [tool for tool, _ in desk.calls(0)] == ["lookup_order", "lookup_order", "search_policy"]
    assert (
        "Order A-1042 arrived 9 days late; policy 4.2 allows a full refund up to 14 days."
        in desk.replies[1].text
    )
    (refund, refund_args), (email, email_args) = desk.calls(1)
    assert (refund, email) == ("issue_refund", "send_email")
    assert refund_args == {
        "order_id": "A-1042",
        "amount": 184.90,
        "currency": "EUR",
        "reason": "late delivery, policy 4.2",
    }
    assert '"amount": 184.90' in desk.replies[1].calls[0].args_json
    assert "A-0977" in email_args["subject"] and "on time" in email_args["body"]
    ((confirmation, confirmed),) = desk.calls(2)
    assert confirmation == "send_email" and "184.90 EUR" in confirmed["body"]
    assert "Order A-1042 is refunded: 184.90 EUR." in final
    assert len(desk.replies) == 4


@pytest.mark.parametrize(
    ("outcome", "content", "words"),
    [
        (
            "rejected",
            "Rejected by Ada. Reason: The customer was refunded by phone.",
            "“The customer was refunded by phone”",
        ),
        ("expired", "Nobody decided in time.", "Nobody decided"),
        ("outcome_unknown", "The attempt was cut off.", "cannot tell"),
        ("failed", "The payment system is down", "failed: The payment system is down."),
        ("invalidated", "The approval no longer holds.", "fresh approval"),
        ("canceled", "Canceled.", "was canceled"),
    ],
)
async def test_a_refund_that_was_not_made_is_taken_up_in_the_last_words(
    tmp_path, outcome, content, words
):
    desk = Desk(tmp_path, outcome=outcome, content=content)
    final = await desk.says("A-1042 was late")
    assert words in final
    assert "is refunded" not in final
    assert len(desk.replies) == 3, "no confirmation, and no second try"


async def test_a_history_without_our_outcomes_is_understood_by_its_words(tmp_path):
    desk = Desk(tmp_path)
    await desk.says("A-1042 was late")
    plain = []
    for message in desk.history:
        for part in message.parts:
            if part.part_kind == "tool-return":
                part.metadata = None
        plain.append(message)
    reply = await ask(desk.model, [*plain[:-1]], TOOLS)
    assert "is refunded" in reply.text


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("A-1108", "has not arrived yet"),
        ("A-0831", "outside the 14 days"),
        ("A-1131", "was canceled"),
        ("A-9999", "There is no order A-9999"),
    ],
)
async def test_an_order_that_does_not_qualify_is_not_refunded(tmp_path, order, words):
    desk = Desk(tmp_path)
    assert words in await desk.says(f"Please refund {order}")
    assert not any(tool == "issue_refund" for reply in (0, 1) for tool, _ in desk.calls(reply))


async def test_a_refund_made_before_is_not_made_again(tmp_path):
    desk = Desk(tmp_path)
    await desk.says("A-1042 was late")
    assert "was refunded in full already" in await desk.says("And A-1042 once more, please")


@pytest.mark.parametrize("text", ["Hello!", "My order is late", "What can you do?"])
async def test_without_an_order_it_says_what_it_does_and_asks_for_one(tmp_path, text):
    desk = Desk(tmp_path)
    assert "I need its number, like A-1042" in await desk.says(text)


async def test_without_a_shop_it_says_so(tmp_path):
    assert "no shop connected" in await Desk(tmp_path, tools=[]).says("A-1042 was late")


async def test_an_order_named_while_the_turn_runs_is_taken_in(tmp_path):
    desk = Desk(tmp_path)
    desk.history.append(user_message("A-1042 was late"))
    first = await ask(desk.model, desk.history, TOOLS)
    desk.history.append(assistant_message(first.response_json))
    for call in first.calls:
        content, outcome = await desk._run(call)
        desk.history.append(tool_result(call.call_id, call.tool, content, outcome))
    final = await desk.says("Look at a-0977 as well")
    assert [args.get("order_id") for _, args in desk.calls(0)] == ["A-0977"]
    assert "A-1042" in final and "A-0977" in final
