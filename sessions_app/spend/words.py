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
    """Cents; a third decimal below ten dollars if it is any, and all of what is less than that."""
    if not amount:
        return "$0"
    if abs(amount) < Decimal("0.001"):
        return f"${amount.normalize():f}"
    exact = amount < 10 and round(amount, 3) != round(amount, 2)
    return f"${amount:,.3f}" if exact else f"${amount:,.2f}"


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


def raised_words(amount: Decimal, limit: Decimal | None) -> str:
    """What a raise by ``amount`` did; ``limit`` is the session's own, that is in force now."""
    if not amount:
        return "The call is asked about again. The session goes on if its budgets allow it now."
    in_all = f", {dollars(limit)} in all" if limit is not None else ""
    return (
        f"It may spend {dollars(amount)} more{in_all}. The call is asked about again, and the "
        "session goes on if that is enough."
    )


def unpriced_words(model: str, budget: str) -> str:
    return (
        f"The price of {model} is not known, and the budget {budget} stops calls of unknown price. "
        "Enter its price in the admin site, or let the budget allow such calls."
    )
