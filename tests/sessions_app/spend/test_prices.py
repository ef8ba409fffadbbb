"""What a model call costs."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from sessions_app.models import ModelPrice
from sessions_app.spend.prices import Usage, cost_of, estimate, own_price

pytestmark = pytest.mark.django_db

MILLION = 1_000_000


def price(name, input="1", output="2", ago=1, **fields):
    valid_from = timezone.now() - timedelta(days=ago)
    return ModelPrice.objects.create(
        name=name, input=input, output=output, valid_from=valid_from, **fields
    )


def cost_by(model, usage, listed):
    return cost_of(model, own_price(model), usage, listed)


def test_the_list_price_is_taken_where_none_is_entered():
    listed = estimate("openai:gpt-5.2", None, lambda: Usage(MILLION, 0))
    assert listed is not None and listed > 0
    assert cost_by("openai:gpt-5.2", Usage(1, 1), Decimal("0.5")) == Decimal("0.5")


def test_a_model_that_nobody_knows_has_no_price_and_the_demo_models_cost_nothing():
    assert estimate("acme:one", None, lambda: Usage(1, 1)) is None
    assert cost_by("acme:one", Usage(1, 1), None) is None
    assert cost_by("demo:script", Usage(1, 1), None) == 0


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(MILLION, 0), "1"),
        (Usage(0, MILLION), "2"),
        (Usage(MILLION, 0, cache_read=MILLION), "0.1"),
        (Usage(MILLION, 0, cache_write=MILLION), "1"),
    ],
)
def test_an_entered_price_goes_over_the_list_price_cached_tokens_included(usage, cost):
    price("openai:gpt-5.2", cache_read="0.1")
    assert cost_by("openai:gpt-5.2", usage, Decimal(99)) == Decimal(cost)


def test_the_exact_name_wins_then_the_longest_pattern_then_the_newest():
    price("acme:*", input="1")
    price("acme:big*", input="2", ago=3)
    price("acme:big*", input="3", ago=2)
    price("acme:big*", input="9", ago=-1)
    price("acme:bigger", input="4")
    costs = [cost_by(f"acme:{name}", Usage(MILLION, 0), None) for name in ("x", "big", "bigger")]
    assert costs == [1, 3, 4]
