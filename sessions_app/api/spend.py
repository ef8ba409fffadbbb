"""Budgets and how they stand. Amounts are texts, exact to a millionth of a US dollar."""

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from sessions_app.api.permissions import VIEW_SESSION
from sessions_app.api.schema import PROBLEMS
from sessions_app.api.views import ApiView
from sessions_app.models import UnpricedModel
from sessions_app.models.spend import CURRENCY
from sessions_app.spend import summary


class Amount(serializers.DecimalField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_digits=14, decimal_places=6, **kwargs)


class BudgetSumSerializer(serializers.Serializer[Any]):
    """``spent`` includes ``reserved``: calls under way, and those whose cost never became known."""

    who = serializers.CharField()
    session = serializers.CharField(source="session_id")
    spent = Amount()
    reserved = Amount()
    limit = Amount()
    used_up = serializers.BooleanField()


class BudgetSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="budget.name")
    scope = serializers.CharField(source="budget.scope")
    period = serializers.CharField(source="budget.period")
    agent = serializers.CharField(source="budget.agent.name", default=None, allow_null=True)
    user = serializers.CharField(source="budget.user.username", default=None, allow_null=True)
    amount = Amount(source="budget.amount")
    allow_unknown = serializers.BooleanField(source="budget.allow_unknown")
    revision = serializers.IntegerField(source="budget.revision")
    since = serializers.DateField(allow_null=True)
    until = serializers.DateField(allow_null=True)
    sums = BudgetSumSerializer(many=True)


class SpentSerializer(serializers.Serializer[Any]):
    who = serializers.CharField()
    session = serializers.CharField(source="session_id")
    spent = Amount()


class UnpricedSerializer(serializers.ModelSerializer[UnpricedModel]):
    class Meta:
        model = UnpricedModel
        fields = ["model", "calls", "last_session", "last_at"]
        read_only_fields = fields


class TodaySerializer(serializers.Serializer[Any]):
    spent = Amount()
    agents = SpentSerializer(many=True)
    users = SpentSerializer(many=True)
    sessions = SpentSerializer(many=True)


class SpendStateSerializer(serializers.Serializer[Any]):
    """``unknown`` are models that were called at a price that is not known; it is in no sum."""

    currency = serializers.CharField()
    budgets = BudgetSerializer(many=True)
    today = TodaySerializer()
    unknown = UnpricedSerializer(many=True)


class Spend(ApiView):
    reads = (VIEW_SESSION,)
    serializer_class = SpendStateSerializer
    pagination_class = None

    @extend_schema(operation_id="spend_retrieve", responses={200: SpendStateSerializer, **PROBLEMS})
    def get(self, request: Request) -> Response:
        """Budgets in force and their highest sums, today's spend, and models of unknown price."""
        total, lines = summary.spent_today()
        return Response(self.get_serializer(_state(total, lines)).data)


def _state(total: Decimal, lines: dict[str, list[summary.Line]]) -> dict[str, Any]:
    return {
        "currency": CURRENCY,
        "budgets": summary.budget_states(),
        "today": {
            "spent": total,
            "agents": lines["agent"],
            "users": lines["user"],
            "sessions": lines["session"],
        },
        "unknown": summary.unpriced(),
    }
