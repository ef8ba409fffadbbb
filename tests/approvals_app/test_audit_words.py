"""Every action that the code can record has words, stands in the filter, and is told in the docs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.contrib import admin

from approvals_app.audit_changes import kind_of
from approvals_app.audit_words import ACTIONS, AREAS, choices
from approvals_app.models import Decision
from sessions_app.admin.audited import AuditedAdmin

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/audit.md").read_text()
NAME = re.compile(r"[a-z]+\.[a-z_]+\Z")


def written_out() -> set[str]:
    """The names that stand in modules which write to the log."""
    return {
        node.value
        for module in modules()
        for node in ast.walk(ast.parse(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if NAME.match(node.value)
    }


def modules() -> Iterator[str]:
    for part in ("approvals_app", "sessions_app", "dexweb"):
        for file in (ROOT / part).rglob("*.py"):
            text = file.read_text()
            if "audit.record" in text:
                yield text


def composed() -> set[str]:
    """Those made of a verdict, or of what is edited in the admin site."""
    changed = {
        f"{kind_of(model())}.{what}"
        for model, page in admin.site._registry.items()
        if isinstance(page, AuditedAdmin)
        for what in ("created", "changed", "deleted")
    }
    # Nobody deletes a user, see `PersonAdmin`.
    return {f"decision.{verdict}" for verdict in Decision.Verdict.values} | changed - {
        "user.deleted"
    }


def test_every_action_has_words_and_no_words_are_left_over():
    used = written_out() | composed()
    assert "delegation.refused" in used
    assert used == set(ACTIONS)


def test_every_action_stands_in_the_filter_under_its_area():
    offered = [action for _, _, actions in choices() for action, _ in actions]
    assert sorted(offered) == sorted(ACTIONS)
    assert {action.partition(".")[0] for action in ACTIONS} == set(AREAS)


def test_every_action_is_told_in_the_docs():
    assert [action for action in ACTIONS if not told(action)] == []


def told(action: str) -> bool:
    """By its own name; or by its first word, for what is made, changed and deleted."""
    kind, _, _ = action.partition(".")
    return f"`{action}`" in DOCS or (action in composed() and f"`{kind}`" in DOCS)
