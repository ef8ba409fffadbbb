"""The members that others read: those of the design, by name."""

import pytest

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

SESSION = "id title agent status phase waiting turn spend limits last_seq runs"
APPROVAL = (
    "id session step_id call_id tool effect risk args args_hash revision state deadline "
    "at_deadline server_time lock votes delivery"
)
SUBADDRESSES = ["steps", "events", "messages", "queue", "graph", "snapshot", "settings"]


@pytest.fixture
def api():
    build.interrupt(build.session())
    return build.client_of(build.person("ann", *build.OPERATE, keys=("refunds.approve",)))


@pytest.mark.parametrize(
    ("path", "members"), [("sessions/refund-desk-1/", SESSION), ("approvals/i-1/", APPROVAL)]
)
def test_what_one_shows(api, path, members):
    assert set(members.split()) <= set(api.get(f"/api/v1/{path}").json())


@pytest.mark.parametrize(
    "path",
    ["sessions/", "approvals/", "sessions/refund-desk-1/steps", "sessions/refund-desk-1/events"],
)
def test_what_a_list_shows(api, path):
    assert {"results", "next", "previous"} <= set(api.get(f"/api/v1/{path}").json())


@pytest.mark.parametrize("name", SUBADDRESSES)
def test_what_can_be_read_of_a_session(api, name):
    assert api.get(f"/api/v1/sessions/refund-desk-1/{name}").status_code == 200


@pytest.mark.parametrize("name", ["stop", "cancel-turn"])
def test_what_can_be_asked_of_a_session_is_asked_by_post_only(api, name):
    assert api.get(f"/api/v1/sessions/refund-desk-1/{name}").status_code == 405


@pytest.mark.parametrize("filter", ["state", "session", "agent", "tool", "permission", "mine"])
def test_approvals_are_filtered_by(api, filter):
    value = {"state": "pending", "mine": "true"}.get(filter, "none")
    found = api.get(f"/api/v1/approvals/?{filter}={value}").json()["results"]
    assert len(found) == (1 if filter in ("state", "mine") else 0)


def test_a_snapshot_leads_on_to_the_events(api):
    snapshot = api.get("/api/v1/sessions/refund-desk-1/snapshot").json()
    assert {"session", "steps", "approvals", "last_seq", "server_time"} <= set(snapshot)
