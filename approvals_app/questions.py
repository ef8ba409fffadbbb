"""A question as pages and the API show it: what is asked, what is typed, and what was answered."""

from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils import timezone

from approvals_app.models import Interrupt
from approvals_app.panel_state import hold_of
from approvals_app.rules import standing_to_decide
from dexweb.engine.errors import DexwebError
from sessions_app import arguments
from sessions_app.flow.terms import Question
from sessions_app.graph.text import shorten
from sessions_app.tools import builtin

LINE = 160


@dataclass(frozen=True)
class Asked:
    """One question as the form draws it. ``own`` is the text beside or in place of choices."""

    number: int
    question: Question
    chosen: list[str] = field(default_factory=list)
    own: str = ""

    @property
    def picks_own(self) -> bool:
        """Whether “in your own words” is the choice that is marked."""
        return bool(self.own) and not self.chosen


def questions_of(interrupt: Interrupt) -> list[Question]:
    """What ``interrupt`` asks; [] when it is an approval."""
    if not interrupt.is_question:
        return []
    return builtin.questions(arguments.parse(interrupt.args))


def first_words(args: str) -> str:
    """The questions in one line, for a list; "" where their text is cut off."""
    try:
        asked = builtin.questions(arguments.parse(args))
    except (ValueError, KeyError, TypeError):
        return ""
    return shorten(" · ".join(" ".join(one.question.split()) for one in asked), LINE)


def answers_in(form: QueryDict, questions: list[Question]) -> list[list[str]]:
    """What the form of a question holds: for each what was chosen, then a text of one's own."""
    return [_chosen(form, n) + _own(form, n) for n in range(len(questions))]


def _chosen(form: QueryDict, number: int) -> list[str]:
    return [text for text in form.getlist(f"choice-{number}")[:20] if text]


def _own(form: QueryDict, number: int) -> list[str]:
    text = form.get(f"text-{number}", "").strip()
    return [text] if text else []


def question_context(
    user: Any,
    interrupt: Interrupt,
    *,
    refusal: DexwebError | None = None,
    typed: QueryDict | None = None,
    answered: bool = False,
) -> dict[str, Any]:
    """The context of ``approvals/_question.html``; ``typed`` is a form that was refused."""
    now = timezone.now()
    hold = hold_of(interrupt, user, now)
    may = standing_to_decide(user, interrupt).may
    pending = interrupt.state == Interrupt.State.PENDING
    questions = questions_of(interrupt)
    return {
        "interrupt": interrupt,
        "asked": [_asked(number, one, typed) for number, one in enumerate(questions)],
        "told": list(zip(questions, interrupt.answers, strict=False)),
        "hold": hold,
        "open_to_decide": pending,
        "may_decide": may,
        "may_vote": may and pending,
        "refusal": refusal,
        "kept": bool(typed) and not pending,
        "request_id": typed.get("request_id", "") if typed else "",
        "answered": answered or refusal is not None,
        "can_view_session": user.has_perm("sessions_app.view_session"),
        "version": f"{interrupt.state}|{hold.state}:{hold.by}:{hold.until}|{may}",
    }


def _asked(number: int, question: Question, typed: QueryDict | None) -> Asked:
    if typed is None:
        return Asked(number, question)
    return Asked(number, question, _chosen(typed, number), "".join(_own(typed, number)))
