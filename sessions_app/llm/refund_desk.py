"""`demo:refund-desk`: decides about refunds by what the shop's tools return, without a model.

A turn goes: look up the orders and the policy; refund what qualifies and write to the customers of
the rest; confirm refunds that were made; sum up. What comes next follows from what the turn's
messages already hold, and each call is made once for an order, so it cannot run in a circle.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo

from sessions_app.llm.demo_models import Call, Utterance
from sessions_app.llm.history import OUTCOME, SUMMARY
from sessions_app.llm.refund_words import sum_up

_ORDER_ID = re.compile(r"\b[A-Z]{1,3}-\d{2,8}\b", re.IGNORECASE)
_FALLBACK_POLICY = {"id": "4.2", "window_days": 14}

ASKS_FOR_ORDER = (
    "I look after refunds: I check an order against the policy, refund it where it qualifies, and"
    " write to the customer. Which order is it about? I need its number, like A-1042."
)
NO_SHOP = (
    "I have no shop connected, so I cannot look up orders. Please connect one that has a"
    " lookup_order tool."
)


@dataclass
class Done:
    """One call of this turn and how it ended; `outcome` is empty while there is no result."""

    tool: str
    args: dict[str, Any]
    outcome: str = ""
    content: str = ""

    @property
    def order_id(self) -> str:
        return str(self.args.get("order_id", "")).upper()


@dataclass
class Turn:
    """What was said and done since the last final answer."""

    said: list[str] = field(default_factory=list)
    calls: dict[str, Done] = field(default_factory=dict)

    def made(self, tool: str) -> list[Done]:
        return [call for call in self.calls.values() if call.tool == tool]

    def order_ids(self) -> list[str]:
        found = (match.upper() for text in self.said for match in _ORDER_ID.findall(text))
        return list(dict.fromkeys(found))


def decide_refunds(messages: list[ModelMessage], info: AgentInfo) -> Utterance:
    """What the refund desk says and does next."""
    tools = {tool.name.rpartition("__")[2]: tool.name for tool in info.function_tools}
    turn = read_turn(messages)
    if not turn.order_ids():
        return Utterance(text=ASKS_FOR_ORDER)
    if "lookup_order" not in tools:
        return Utterance(text=NO_SHOP)
    unseen = [order_id for order_id in turn.order_ids() if order_id not in _looked_up(turn)]
    if unseen:
        return _look_up(unseen, turn, tools)
    orders = _orders(turn)
    policy = _late_policy(turn)
    return (
        _act(orders, policy, turn, tools)
        or _confirm(orders, turn, tools)
        or sum_up(orders, policy, turn)
    )


def read_turn(messages: Iterable[ModelMessage]) -> Turn:
    """Gathers the turn's texts and calls; a reply without calls ended the turn before."""
    turn = Turn()
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            if not calls:
                turn = Turn()
            for part in calls:
                turn.calls[part.tool_call_id] = Done(
                    part.tool_name.rpartition("__")[2], _args(part)
                )
        elif isinstance(message, ModelRequest):
            _read_request(message, turn)
    return turn


def qualifies(order: dict[str, Any], policy: dict[str, Any]) -> bool:
    """Whether the order arrived late and is still within the policy's window, with something left
    to refund.
    """
    since = order.get("days_since_delivery")
    return (
        order.get("status") == "delivered"
        and int(order.get("days_late") or 0) > 0
        and since is not None
        and int(since) <= int(policy["window_days"])
        and amount_left(order) > 0
    )


def amount_left(order: dict[str, Any]) -> Decimal:
    """What can still be refunded, with two decimals."""
    left = Decimal(str(order.get("paid") or 0)) - Decimal(str(order.get("refunded") or 0))
    return left.quantize(Decimal("0.01"))


def why_not(order: dict[str, Any], policy: dict[str, Any]) -> str:
    """Why an order is not refunded, as the second half of a sentence."""
    late = int(order.get("days_late") or 0)
    if order.get("status") == "canceled":
        return "was canceled"
    if order.get("status") != "delivered":
        return "has not arrived yet"
    if amount_left(order) <= 0:
        return "was refunded in full already"
    if late <= 0:
        return "arrived on time"
    since, window = order.get("days_since_delivery"), policy["window_days"]
    return f"arrived {since} days ago, outside the {window} days of the policy"


def _look_up(unseen: list[str], turn: Turn, tools: dict[str, str]) -> Utterance:
    calls = [Call(tools["lookup_order"], {"order_id": order_id}) for order_id in unseen]
    searches = "search_policy" in tools and not turn.made("search_policy")
    if searches:
        calls.append(Call(tools["search_policy"], {"query": "late delivery refund"}))
    what = f"order {unseen[0]}" if len(unseen) == 1 else f"orders {' and '.join(unseen)}"
    text = f"I'll look at {what}{' and the policy' if searches else ''} first."
    return Utterance(text=text, calls=tuple(calls))


def _act(
    orders: dict[str, dict[str, Any]], policy: dict[str, Any], turn: Turn, tools: dict[str, str]
) -> Any:
    """Refunds what qualifies and writes to the customers of the rest, as far as neither was tried
    in this turn.
    """
    treated = {call.order_id for call in turn.made("issue_refund")}
    written_about = {
        order_id
        for call in turn.made("send_email")
        for order_id in _ORDER_ID.findall(str(call.args.get("subject")))
    }
    sentences, calls = [], []
    for order_id, order in orders.items():
        if order_id in treated | written_about:
            continue
        if qualifies(order, policy) and "issue_refund" in tools:
            sentences.append(
                f"Order {order_id} arrived {order['days_late']} days late; policy {policy['id']}"
                f" allows a full refund up to {policy['window_days']} days."
            )
            calls.append(Call(tools["issue_refund"], _refund_args(order_id, order, policy)))
        elif not qualifies(order, policy) and "send_email" in tools:
            sentences.append(
                f"Order {order_id} {why_not(order, policy)}, so I am explaining that by e-mail."
            )
            calls.append(Call(tools["send_email"], _explanation(order_id, order, policy)))
    return Utterance(text=" ".join(sentences), calls=tuple(calls)) if calls else None


def _confirm(orders: dict[str, dict[str, Any]], turn: Turn, tools: dict[str, str]) -> Any:
    """Writes to the customer of each refund that was made."""
    confirmed = " ".join(
        str(call.args.get("subject"))
        for call in turn.made("send_email")
        if "refund" in str(call.args.get("subject"))
    )
    made = [call for call in turn.made("issue_refund") if call.outcome == "completed"]
    due = [call for call in made if f"Your refund for order {call.order_id}" not in confirmed]
    if not due or "send_email" not in tools:
        return None
    calls = tuple(
        Call(tools["send_email"], _confirmation(call, orders.get(call.order_id, {})))
        for call in due
    )
    return Utterance(text="The refund is made. I'll confirm it to the customer.", calls=calls)


def _refund_args(order_id: str, order: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    return {
        "order_id": order_id,
        "amount": amount_left(order),
        "currency": order.get("currency", "EUR"),
        "reason": f"late delivery, policy {policy['id']}",
    }


def _explanation(order_id: str, order: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    return {
        "to": order.get("email", ""),
        "subject": f"About your order {order_id}",
        "body": f"Dear {order.get('customer', 'customer')},\n\nwe checked your order {order_id}"
        f" ({order.get('item', 'your item')}). It {why_not(order, policy)}, so policy"
        f" {policy['id']} on late delivery gives no refund for it. If something else is wrong with"
        " it, just answer this e-mail.\n\nYour refund desk",
    }


def _confirmation(call: Done, order: dict[str, Any]) -> dict[str, Any]:
    amount = Decimal(str(call.args.get("amount") or 0)).quantize(Decimal("0.01"))
    return {
        "to": order.get("email", ""),
        "subject": f"Your refund for order {call.order_id}",
        "body": f"Dear {order.get('customer', 'customer')},\n\nwe refunded {amount}"
        f" {call.args.get('currency', '')} for order {call.order_id}, since it arrived late."
        " We are sorry for the wait.\n\nYour refund desk",
    }


def _looked_up(turn: Turn) -> set[str]:
    return {call.order_id for call in turn.made("lookup_order")}


def _orders(turn: Turn) -> dict[str, dict[str, Any]]:
    """What the look-ups found, by order id, in the order asked."""
    found = {}
    for call in turn.made("lookup_order"):
        order = _json_object(call.content)
        if call.outcome == "completed" and order.get("order_id"):
            found[call.order_id] = order
    return found


def _late_policy(turn: Turn) -> dict[str, Any]:
    """The rule on late delivery as the shop words it; ours where it could not be read."""
    for call in turn.made("search_policy"):
        for policy in _json_object(call.content).get("policies", []):
            if (
                isinstance(policy, dict)
                and "late" in str(policy.get("title", "")).lower()
                and policy.get("window_days")
            ):
                return policy
    return _FALLBACK_POLICY


def _read_request(message: ModelRequest, turn: Turn) -> None:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            said = (
                part.content if isinstance(part.content, str) else " ".join(map(str, part.content))
            )
            # A summary of turns before says nothing that is asked for in this one.
            if not said.startswith(SUMMARY):
                turn.said.append(said)
        elif isinstance(part, ToolReturnPart) and part.tool_call_id in turn.calls:
            call = turn.calls[part.tool_call_id]
            call.content = part.model_response_str(wrap_if_error=False)
            call.outcome = _outcome(part, call.content)


def _outcome(part: ToolReturnPart, content: str) -> str:
    """Our word for how the call ended; guessed from the text in a history others wrote."""
    if isinstance(part.metadata, dict) and part.metadata.get(OUTCOME):
        return str(part.metadata[OUTCOME])
    if part.outcome == "success":
        return "completed"
    words = content.lower()
    guesses = ("expired", "invalidated", "canceled", "rejected")
    if "unknown" in words:
        return "outcome_unknown"
    return next(
        (guess for guess in guesses if guess in words),
        "rejected" if part.outcome == "denied" else "failed",
    )


def _args(part: ToolCallPart) -> dict[str, Any]:
    if isinstance(part.args, dict):
        return part.args
    return _json_object(part.args or "{}")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
