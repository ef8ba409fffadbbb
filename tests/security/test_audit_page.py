"""Nobody can write something into the audit log that keeps others from reading it."""

import pytest

from approvals_app.models import PermissionKey
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

ODD = [
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-02-30T00:00:00Z",
    "interrupt:/",
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("text", ODD)
def test_what_a_refused_person_typed_is_shown_as_typed(client, text):
    PermissionKey.objects.create(key="refunds.approve")
    bob = build.client_of(build.person("bob", *build.LOOK))
    asked = {"receiver": text, "key": text, "reason": text, "ends_at": "2027-01-01T00:00:00Z"}
    assert bob.post("/api/v1/delegations/", asked).status_code == 403
    client.force_login(build.person("ann", "view_auditentry"))
    answer = client.get("/audit/")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.content.decode()
