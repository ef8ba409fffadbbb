"""A request is one request, however often it comes, and a session ends once."""

import uuid

import pytest
from django.contrib.auth.models import User

from approvals_app.models import AuditEntry
from dexweb.engine.errors import SessionClosed
from sessions_app import actions
from sessions_app.models import Session
from tests.live.conftest import Live

pytestmark = pytest.mark.usefixtures("standing_worker")


def rid() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def ann(live: Live) -> User:
    live.agent([{"text": "Done."}], pool="standing")
    return live.person("ann")


def test_what_a_session_took_it_answers_once_more_after_its_end_and_takes_nothing_new(
    live: Live, ann: User
) -> None:
    session = live.idle(live.start(ann))
    sending, stopping = rid(), rid()
    sent = actions.send_message(ann, session.pk, "Second.", sending)
    stopped = actions.stop(ann, session.pk, "cancel", "Enough.", stopping)
    assert Session.objects.get(pk=session.pk).status == "canceled"
    assert actions.send_message(ann, session.pk, "Second.", sending) == sent
    assert actions.stop(ann, session.pk, "cancel", "Enough.", stopping) == stopped
    assert AuditEntry.objects.filter(action="session.stopped").count() == 1
    for attempt in (
        lambda: actions.send_message(ann, session.pk, "Third.", rid()),
        lambda: actions.stop(ann, session.pk, "complete", "", rid()),
    ):
        with pytest.raises(SessionClosed) as refused:
            attempt()
        assert refused.value.session_status == "canceled"


def test_a_message_under_the_id_of_the_request_that_began_the_session_is_the_one_it_began_with(
    live: Live, ann: User
) -> None:
    request = rid()
    session = actions.start_session(ann, agent="desk", message="First.", request_id=request)
    answer = actions.send_message(ann, session.pk, "First.", request)
    assert (answer.id, answer.state) == (request, "queued")
    live.idle(session)
    assert list(session.messages.values_list("text", flat=True)) == ["First."]
    assert actions.send_message(ann, session.pk, "Second.", rid()).state == "queued"
    live.idle(session, turn=2)
