"""What a model call costs: a price of one's own where there is one, else the provider's list price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.utils import timezone

from sessions_app.models import ModelPrice

if TYPE_CHECKING:
    from sessions_app.llm.stream import ModelReply

MILLION = Decimal(1_000_000)
#: The provider's name in genai-prices, where it is another than the one in a model's name.
_PROVIDERS = {"openai-chat": "openai", "openai-responses": "openai", "google-gla": "google"}


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; cached ones are part of ``input``."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


def usage_of(reply: ModelReply) -> Usage:
    return Usage(
        reply.input_tokens, reply.output_tokens, reply.cache_read_tokens, reply.cache_write_tokens
    )


def own_price(model: str) -> ModelPrice | None:
    """The price entered for ``model`` that is valid now: the exact name wins, then the longest pattern."""
    rows = ModelPrice.objects.filter(valid_from__lte=timezone.now())
    fitting = [row for row in rows if row.fits(model)]
    return max(
        fitting,
        key=lambda row: (row.name == model, len(row.name.rstrip("*")), row.valid_from),
        default=None,
    )


def cost_of(
    model: str, own: ModelPrice | None, usage: Usage, listed: Decimal | None
) -> Decimal | None:
    """What a call cost in US dollars; ``listed`` is its list price. None when it is not known.

    ``own`` is the price that was valid when the call began, see `own_price`.
    """
    if own is not None:
        return _own_cost(own, usage)
    return Decimal(0) if model.startswith("demo:") else listed


def estimate(model: str, own: ModelPrice | None, expected: Callable[[], Usage]) -> Decimal | None:
    """As `cost_of`, before the call, from the tokens that it may take at most; they are asked for
    only where they cost something.
    """
    if own is not None:
        return _own_cost(own, expected())
    return Decimal(0) if model.startswith("demo:") else _listed(model, expected())


def _own_cost(price: ModelPrice, usage: Usage) -> Decimal:
    cached = usage.cache_read + usage.cache_write
    parts = (
        (max(0, usage.input - cached), price.input),
        (usage.cache_read, price.input if price.cache_read is None else price.cache_read),
        (usage.cache_write, price.input if price.cache_write is None else price.cache_write),
        (usage.output, price.output),
    )
    return sum((tokens * each for tokens, each in parts), Decimal(0)) / MILLION


def _listed(model: str, usage: Usage) -> Decimal | None:
    # Takes a while to import, and most of what imports this asks for no price.
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    provider, _, name = model.partition(":")
    tokens = Tokens(input_tokens=usage.input, output_tokens=usage.output)
    try:
        return calc_price(tokens, name, provider_id=_PROVIDERS.get(provider, provider)).total_price
    except (LookupError, ValueError, AssertionError):
        return None
