"""Editing before approving: the fields of a schema, the errors at them, and the look at what changed."""

import json

import pytest

from approvals_app.argument_diff import changes
from approvals_app.argument_rows import pretty
from approvals_app.edit_form import edit_fields, field_errors
from approvals_app.models import Decision
from dexweb.engine.errors import InvalidArguments
from tests.sessions_app.api import build

HTMX = {"HX-Request": "true"}
ASKED = '{"amount": 12, "note": "the order came late", "big": 12345678901234567890}'
BIG = "1234567890123456789"
SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "note": {"type": "string"},
        "big": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}},
    },
    "required": ["amount"],
    "additionalProperties": False,
}


@pytest.fixture
def approver(client, db):
    client.force_login(build.person("ann", *build.LOOK, keys=("refunds.approve",)))
    return client


@pytest.fixture
def row(db):
    return asked()


def asked(editable=True, schema=SCHEMA, **fields):
    session = build.session()
    made = build.interrupt(session, args=ASKED, policy={"editable": editable}, **fields)
    build.call(session, made.call_id, ASKED, schema=schema)
    return made


def review(client, row, args, **changed):
    form = {"revision": row.revision, "args_hash": row.args_hash, "args": args, **changed}
    return client.post(f"/approvals/{row.pk}/edit/", form, headers=HTMX)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "string"}, {"kind": "text"}),
        ({"type": "string", "format": "date"}, {"kind": "text", "format": "date"}),
        ({"type": "integer"}, {"kind": "integer"}),
        ({"type": "boolean"}, {"kind": "boolean"}),
        ({"type": "null"}, {"kind": "null"}),
        ({"enum": ["EUR", 5, None]}, {"kind": "choice", "options": ['"EUR"', "5", "null"]}),
        ({"const": True}, {"kind": "choice", "options": ["true"]}),
        ({"type": ["number", "null"]}, {"kind": "number", "nullable": True}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Memo"},
            {"kind": "text", "nullable": True, "label": "Memo"},
        ),
        (
            {"type": "array", "items": {"type": "number"}},
            {"kind": "list", "item": {"kind": "number"}},
        ),
        ({"$ref": "#/$defs/money"}, {"kind": "number", "help": "In euros"}),
        ({"$ref": "https://elsewhere.example/x"}, {"kind": "json"}),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, {"kind": "json"}),
        ({}, {"kind": "json"}),
        (True, {"kind": "json"}),
    ],
)
def test_each_kind_of_value_has_its_field(schema, field):
    root = {
        "type": "object",
        "properties": {"value": schema},
        "$defs": {"money": {"type": "number", "description": "In euros"}},
    }
    assert edit_fields(root)["fields"] == [{**field, "name": "value", "required": False}]


def test_a_schema_that_holds_itself_ends_in_a_box_of_json():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    drawn = json.dumps(edit_fields(tree))
    assert '"kind": "json"' in drawn
    assert len(drawn) < 5000


def test_errors_stand_at_their_fields():
    refusal = InvalidArguments(errors=["$.lines[0].sku: 5 is not of type 'string'", "Not JSON."])
    assert [(error.path, error.words) for error in field_errors(refusal)] == [
        ("$.lines[0].sku", "5 is not of type 'string'"),
        ("", "Not JSON."),
    ]


def test_a_text_is_compared_word_by_word():
    (change,) = changes('{"note": "the order came late"}', '{"note": "the parcel came very late"}')
    assert [(piece.kind, piece.text) for piece in change.pieces] == [
        ("same", "the "),
        ("removed", "order"),
        ("added", "parcel"),
        ("same", " came "),
        ("added", "very "),
        ("same", "late"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('{"a": "12"}', '{"a": 12}', [("a", "changed", '"12"', "12")]),
        (f'{{"a": {BIG}0}}', f'{{"a": {BIG}1}}', [("a", "changed", f"{BIG}0", f"{BIG}1")]),
        ('{"a": true}', '{"a": null}', [("a", "changed", "true", "null")]),
        ('{"a": {"b": [1, 2]}}', '{"a": {"b": [1, 3]}}', [("a.b[2]", "changed", "2", "3")]),
        ('{"a": 1}', "{}", [("a", "removed", "1", "")]),
        ("{}", '{"a b": {"c": 1}}', [('"a b"', "added", "", '{"c": 1}')]),
        ('{"a": 1}', '{"a": 1}', []),
    ],
)  # fmt: skip
def test_other_values_are_compared_whole_and_exactly(before, after, expected):
    found = [
        (
            change.path,
            change.kind,
            "".join(piece.text for piece in change.pieces if piece.kind == "removed"),
            "".join(piece.text for piece in change.pieces if piece.kind == "added"),
        )
        for change in changes(before, after)
    ]
    assert found == expected


def test_the_raw_box_keeps_every_digit():
    text = '{"n": 12345678901234567890, "price": 1.10, "list": [], "deep": {"é": [null]}}'
    assert json.loads(pretty(text)) == json.loads(text)
    for part in ("12345678901234567890", "1.10", "é"):
        assert part in pretty(text)


def test_a_panel_offers_editing_only_where_the_policy_and_a_schema_allow_it(approver, row):
    assert "data-edit " in approver.get("/approvals/i-1/panel/").content.decode()
    row.policy = {"editable": False}
    row.save()
    assert "data-edit " not in approver.get("/approvals/i-1/panel/").content.decode()


def test_without_a_schema_nothing_can_be_edited(approver, db):
    row = asked(schema={})
    assert "data-edit " not in approver.get("/approvals/i-1/panel/").content.decode()
    assert review(approver, row, '{"amount": 1}').status_code == 403


def test_a_review_shows_what_would_change_and_decides_nothing(approver, row):
    args = ASKED.replace("12,", "99,").replace("late", "on time")
    response = review(approver, row, args, reason="typed before")
    page = response.content.decode()
    assert response.status_code == 200
    assert "<del>12</del><ins>99</ins>" in page
    assert "<del>late</del><ins>on time</ins>" in page
    assert "Approve as edited" in page
    assert "typed before" in page
    assert not Decision.objects.exists()


def test_arguments_that_do_not_fit_are_refused_at_the_field_and_stay_typed(approver, row):
    response = review(approver, row, '{"amount": "much", "note": 5}')
    page = response.content.decode()
    assert response.status_code == 422
    assert 'data-code="invalid_arguments"' in page
    assert "<code>$.amount</code>" in page
    assert "<code>$.note</code>" in page
    assert "much" in page
    assert "Approve as edited" not in page


@pytest.mark.parametrize("args", ["{", "[1]", '{"amount": NaN}', '{"amount": 1, "amount": 2}'])
def test_what_is_not_clear_json_is_refused_and_stays_typed(approver, row, args):
    response = review(approver, row, args)
    assert response.status_code == 422
    assert response.context["edit"].text == args


def test_the_same_arguments_in_another_format_change_nothing(approver, row):
    page = review(approver, row, json.dumps(json.loads(ASKED), indent=4)).content.decode()
    assert "Nothing was changed" in page


def test_a_review_of_what_is_no_longer_shown_is_refused(approver, row):
    response = review(approver, row, '{"amount": 1}', args_hash="0" * 64)
    assert response.status_code == 409
    assert 'data-code="stale_interrupt"' in response.content.decode()


def test_who_may_not_decide_may_not_look_at_an_edit(client, row):
    client.force_login(build.person("vic", *build.LOOK))
    assert review(client, row, '{"amount": 1}').status_code == 403


def test_an_edit_by_somebody_else_is_shown_against_what_the_agent_asked_for(approver, db):
    asked(original_args=ASKED.replace("12,", "7,"), edited_by_name="bob", revision=2)
    page = approver.get("/approvals/i-1/").content.decode()
    assert "Edited by bob" in page
    assert "<del>7</del><ins>12</ins>" in page
