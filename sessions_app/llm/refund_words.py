"""The refund desk's last words of a turn: one sentence for each thing that happened, or did not."""

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sessions_app.llm.demo_models import Utterance

if TYPE_CHECKING:
    from sessions_app.llm.refund_desk import Done, Turn

_REASON = re.compile(
    r"(?:reason|because|said|wrote)\b[^:\n]{0,40}:\s*(.+)", re.IGNORECASE | re.DOTALL
)

_REFUND_WORDS = {
    "expired": "Nobody decided on the refund for order {order} in time, so it was not made. Ask me"
    " again to request it anew.",
    "outcome_unknown": "I cannot tell whether the refund for order {order} went through: the call"
    " was cut off. I have not tried again, so that it is not paid twice; please check the payment"
    " account first.",
    "canceled": "The refund for order {order} was canceled before it ran, so nothing was paid.",
    "invalidated": "The refund for order {order} was approved, but the approval no longer held when"
    " it was to run, so nothing was paid. It needs a fresh approval.",
    "failed": "The refund for order {order} failed: {content}",
}


def sum_up(orders: dict[str, dict[str, Any]], policy: dict[str, Any], turn: "Turn") -> Utterance:
    """The final text of a turn."""
    from sessions_app.llm.refund_desk import qualifies, why_not

    sentences = [_refund_sentence(call) for call in turn.made("issue_refund")]
    refunded = {call.order_id for call in turn.made("issue_refund")}
    for order_id, order in orders.items():
        if order_id in refunded:
            continue
        if qualifies(order, policy):
            sentences.append(
                f"Order {order_id} qualifies for a refund, but I have no tool to make it."
            )
        else:
            sentences.append(
                f"Order {order_id} {why_not(order, policy)}, so there is no refund for it."
            )
    sentences.extend(
        _lookup_sentence(call) for call in turn.made("lookup_order") if call.order_id not in orders
    )
    sentences.extend(_email_sentence(call) for call in turn.made("send_email"))
    return Utterance(text=" ".join(sentences))


def _refund_sentence(call: "Done") -> str:
    if call.outcome == "completed":
        amount = Decimal(str(call.args.get("amount") or 0)).quantize(Decimal("0.01"))
        return f"Order {call.order_id} is refunded: {amount} {call.args.get('currency', '')}."
    if call.outcome == "rejected":
        reason = _reason(call.content)
        because = f" for this reason: “{reason}”. I'll leave it at that" if reason else ""
        return f"The refund for order {call.order_id} was not approved{because}. Nothing was paid."
    words = _REFUND_WORDS.get(call.outcome, _REFUND_WORDS["failed"])
    return words.format(order=call.order_id, content=_sentence(call.content))


def _lookup_sentence(call: "Done") -> str:
    return f"I could not look up order {call.order_id}: {_sentence(call.content)}"


def _email_sentence(call: "Done") -> str:
    about = str(call.args.get("subject", "")).rpartition(" ")[2]
    if call.outcome == "completed":
        return f"The customer of order {about} has an e-mail about it."
    if call.outcome == "rejected":
        return f"The e-mail about order {about} was not approved, so it was not sent."
    if call.outcome == "outcome_unknown":
        return f"I cannot tell whether the e-mail about order {about} was sent."
    return f"The e-mail about order {about} was not sent."


def _reason(content: str) -> str:
    """The approver's own words out of the result's text."""
    match = _REASON.search(content)
    reason = match.group(1) if match else content
    return reason.strip().splitlines()[0].strip(" \"“”'.") if reason.strip() else ""


def _sentence(content: str) -> str:
    words = content.strip() or "no reason was given"
    return words if words.endswith((".", "!", "?")) else f"{words}."
