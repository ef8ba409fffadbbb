"""Budgets in words for people, said once for the page, the API and the session's panel."""

from decimal import Decimal

from sessions_app.models import SpendBudget

_EACH = {
    SpendBudget.Scope.SESSION: "each session",
    SpendBudget.Scope.AGENT: "each agent",
    SpendBudget.Scope.USER: "each user",
    SpendBudget.Scope.ALL: "all sessions together",
}
_PERIOD = {
    SpendBudget.Period.TOTAL: "in all",
    SpendBudget.Period.DAY: "a day",
    SpendBudget.Period.MONTH: "a month",
}
_NOW = {
    SpendBudget.Period.TOTAL: "",
    SpendBudget.Period.DAY: " for today",
    SpendBudget.Period.MONTH: " for this month",
}


def dollars(amount: Decimal) -> str:
    """With two decimals, or as many as it takes to tell a small amount from nothing."""
    if amount and abs(amount) < Decimal("0.01"):
        return f"${amount.normalize():f}"
    return f"${amount:,.2f}"


def budget_words(budget: SpendBudget) -> str:
    """What it counts, like “each session of refund-desk, a day”."""
    of = f" of {budget.agent.name}" if budget.agent else ""
    by = f" started by {budget.user.get_username()}" if budget.user else ""
    scope = SpendBudget.Scope(budget.scope)
    if scope == SpendBudget.Scope.AGENT and budget.agent:
        return f"{budget.agent.name}{by}, {_PERIOD[SpendBudget.Period(budget.period)]}"
    if scope == SpendBudget.Scope.USER and budget.user:
        who = budget.user.get_username()
        return f"{who}{f' with {budget.agent.name}' if budget.agent else ''}, {_period(budget)}"
    return f"{_EACH[scope]}{of}{by}, {_period(budget)}"


def _period(budget: SpendBudget) -> str:
    return _PERIOD[SpendBudget.Period(budget.period)]


def refused_words(budget: SpendBudget, spent: Decimal) -> str:
    when = _NOW[SpendBudget.Period(budget.period)]
    return (
        f"The budget {budget.name} is used up{when}: {dollars(spent)} of {dollars(budget.amount)}."
    )


def unpriced_words(model: str, budget: str) -> str:
    return (
        f"The price of {model} is not known, and the budget {budget} stops calls of unknown price. "
        "Enter its price in the admin site, or let the budget allow such calls."
    )
