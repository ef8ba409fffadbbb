"""A secret that a server gives back, however it spells it, goes no further."""

import json
import logging

import pytest

from sessions_app.tools.connection import Connection, to_tool_def
from sessions_app.tools.definitions import ConnectionSpec
from sessions_app.tools.redaction import HIDDEN, redact
from sessions_app.tools.transport import ErrorTail

PLAIN = "sk-a-very-secret-value-0123456789"
KEY_FILE = '-----BEGIN KEY-----\nMIIEtheFirstLineOfIt\n"with\\odd" cäracters\n-----END KEY-----\n'
INSIDE = ("MIIEtheFirstLineOfIt", "cäracters", "c\\u00e4racters", "c%C3%A4racters")


def spellings(secret):
    return {
        "as it is": secret,
        "JSON": json.dumps({"key": secret}),
        "JSON with letters kept": json.dumps({"key": secret}, ensure_ascii=False),
        "JSON inside JSON": json.dumps({"log": json.dumps({"key": secret})}),
        "Python": repr(secret),
        "one of its lines": f"could not read {secret.splitlines()[-2 if chr(10) in secret else 0]}",
    }


@pytest.mark.parametrize("secret", [PLAIN, KEY_FILE], ids=["a line", "a key file"])
@pytest.mark.parametrize("spelling", spellings(PLAIN))
def test_it_is_hidden_in_every_usual_spelling(secret, spelling):
    text = f"before {spellings(secret)[spelling]} after"
    cleaned = redact(text, secret)
    assert HIDDEN in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert secret.strip() not in cleaned
    assert not any(part in cleaned for part in INSIDE)


def test_ordinary_lines_of_a_key_file_are_left_alone():
    secret = "{\n  \n}\nname: shop\nprivate: 8a7f6e5d4c3b2a19"
    assert redact("{ } shop", secret) == "{ } shop"


class Described:
    """A server's tool, as the MCP client gives it."""

    name, title, annotations = "look", "", None
    description = f"Looks with {PLAIN}"
    input_schema = {"properties": {"account": {"enum": [PLAIN], "description": f"not {PLAIN}"}}}


def test_what_a_tool_says_of_itself_is_cleaned_before_anybody_reads_it():
    told = to_tool_def("shop", Described(), PLAIN)
    assert PLAIN not in repr(told)
    assert told.schema["properties"]["account"]["enum"] == [HIDDEN]


def test_the_log_of_a_servers_errors_is_cleaned(caplog):
    caplog.set_level(logging.DEBUG)
    tail = ErrorTail("shop", secret=PLAIN)
    tail.file.write(f"cannot sign in with {PLAIN}\n")
    tail.file.flush()
    assert PLAIN not in tail.text()
    assert "cannot sign in" in caplog.text
    assert PLAIN not in caplog.text


def test_a_secret_at_the_cut_of_a_long_line_is_not_half_shown():
    tail = ErrorTail("shop", secret=PLAIN)
    tail.file.write(f"{'x' * 490}{PLAIN}\n")
    tail.file.flush()
    assert PLAIN[:10] not in tail.text()


async def test_a_secret_at_the_cut_of_a_long_result_is_not_half_shown(monkeypatch):
    from mcp import types

    from sessions_app.tools import results

    monkeypatch.setattr(results, "MAX_RESULT_BYTES", 100)
    connection = Connection(ConnectionSpec("shop", "stdio", ("shop",), secret=PLAIN))
    part = types.TextContent(type="text", text=f"{'x' * 90}{PLAIN}")
    result = connection._as_result("look", types.CallToolResult(content=[part]))
    assert PLAIN[:10] not in result.text
