"""An agent's budgets as its file has them: named after the agent, beside those of the admin site."""

from typing import Any, Literal

from sessions_app.agents_file import BUDGETS, BudgetEntry
from sessions_app.models import Agent, SpendBudget

What = Literal["created", "changed", "unchanged", "deleted"]
_HELD = ("scope", "period", "amount", "allow_unknown", "enabled")


def budgets_differ(agent: Agent, entries: list[BudgetEntry] | None) -> bool:
    """Whether the file would change anything; it never does where it says nothing of spend."""
    if entries is None:
        return False
    given = {_name(agent, entry.kind): _values(entry) for entry in entries}
    return given != {row.name: {key: getattr(row, key) for key in _HELD} for row in _rows(agent)}


def set_budgets(agent: Agent, entries: list[BudgetEntry] | None) -> list[tuple[str, What]]:
    """Make the agent's budgets those of the file; what it leaves out is no longer limited by it.

    Returns the name of each, and what became of it.
    """
    if entries is None:
        return []
    done: list[tuple[str, What]] = []
    kept = {row.name: row for row in _rows(agent)}
    for entry in entries:
        name, values = _name(agent, entry.kind), _values(entry)
        row = kept.pop(name, None)
        if row is None:
            SpendBudget.objects.create(name=name, agent=agent, **values)
            done.append((name, "created"))
        elif any(getattr(row, key) != value for key, value in values.items()):
            for key, value in values.items():
                setattr(row, key, value)
            row.revision += 1
            row.save()
            done.append((name, "changed"))
        else:
            done.append((name, "unchanged"))
    for row in kept.values():
        row.delete()
        done.append((row.name, "deleted"))
    return done


def _rows(agent: Agent) -> list[SpendBudget]:
    if agent.pk is None:
        return []
    names = [_name(agent, kind) for kind in BUDGETS]
    return list(SpendBudget.objects.filter(agent=agent, name__in=names))


def _name(agent: Agent, kind: str) -> str:
    return f"{agent.name}-{kind}"


def _values(entry: BudgetEntry) -> dict[str, Any]:
    return {
        "scope": entry.scope,
        "period": entry.period,
        "amount": entry.amount,
        "allow_unknown": entry.allow_unknown,
        "enabled": True,
    }
