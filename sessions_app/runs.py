"""The engine's runs of a session, linked both ways."""

from dataclasses import dataclass

from sessions_app.models import Session

RUNS_READ = 500


@dataclass(frozen=True)
class Run:
    """``previous`` and ``next`` are the runs beside it, "" where there is none."""

    run_id: str
    current: bool
    previous: str = ""
    next: str = ""


def runs_of(session: Session) -> list[Run]:
    """Oldest first, of the newest RUNS_READ; the last is the one that goes on. One query."""
    told = session.events.filter(step_id="", type__in=["session.started", "session.continued"])
    newest = list(told.order_by("-seq").values_list("payload", flat=True)[:RUNS_READ])[::-1]
    ids = [payload["run_id"] for payload in newest if payload.get("run_id")]
    if session.run_id:
        ids.append(session.run_id)
    ids = list(dict.fromkeys(ids))
    before, after = ["", *ids], [*ids[1:], ""]
    return [
        Run(run_id, run_id == session.run_id, previous, following)
        for run_id, previous, following in zip(ids, before, after, strict=False)
    ]
