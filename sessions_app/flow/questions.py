"""Questions to a person: which answers fit, and how the model is told of them. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sessions_app.flow.terms import Question

ANSWER_BYTES = 8 * 1024
#: A question waits for as long as it takes. A real moment, so that waits are in one order by it.
NO_DEADLINE = datetime(9999, 1, 1, tzinfo=UTC)


def faults(questions: list[Question], answers: list[list[str]]) -> list[str]:
    """What is wrong with ``answers``, a sentence each; [] when they fit.

    Each answer is what was chosen, and beside it, or in its place, a text of one's own.
    """
    if len(answers) != len(questions):
        many = (
            f"There are {len(questions)} questions"
            if len(questions) > 1
            else "There is one question"
        )
        return [f"{many}, and {len(answers)} came with an answer. Answer all of them at once."]
    found = []
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
        words = _fault(question, answer)
        if words:
            found.append(f"Question {number}: {words}" if len(questions) > 1 else words)
    return found


def _fault(question: Question, answer: list[str]) -> str:
    own = [text for text in answer if text not in question.choices]
    if not answer or not all(text.strip() for text in answer):
        return "Choose an answer." if question.choices else "Write an answer."
    if len(set(answer)) != len(answer):
        return "An answer was given twice."
    if own and not question.free_text:
        return f"“{own[0][:200]}” is none of the choices. Choose from those that are offered."
    if len(own) > 1:
        return "Only one text of your own may be among the answers."
    if len(answer) > 1 and not question.multiple:
        return "Choose one answer only."
    if any(len(text.encode("utf-8", "replace")) > ANSWER_BYTES for text in answer):
        return f"The answer is longer than {ANSWER_BYTES // 1024} KiB. Shorten it."
    return ""


def as_result(questions: list[Question], answers: list[list[str]], by: str) -> str:
    """What the model reads: JSON of each question with its answer, and who gave them."""
    told = [
        {"question": question.question, "answer": answer if question.multiple else answer[0]}
        for question, answer in zip(questions, answers, strict=True)
    ]
    return json.dumps({"answered_by": by, "answers": told}, ensure_ascii=False)
