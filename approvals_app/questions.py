"""A question as pages and the API show it: what is asked, and what was answered."""

from approvals_app.models import Interrupt
from sessions_app import arguments
from sessions_app.flow.terms import Question
from sessions_app.tools import builtin


def questions_of(interrupt: Interrupt) -> list[Question]:
    """What ``interrupt`` asks; [] when it is an approval."""
    if not interrupt.is_question:
        return []
    return builtin.questions(arguments.parse(interrupt.args))
