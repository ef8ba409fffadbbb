"""What the storm blows over: people with tokens, agents with tools, and a witness of every event."""

from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection
from rest_framework.authtoken.models import Token

from approvals_app.models import PermissionKey
from sessions_app.agents_yaml import load_agents

PEOPLE = ("ada", "bob", "cem", "dia")
KEY = "refunds.approve"
DELAYS = "lookup_order=80ms,issue_refund=150ms,send_email=80ms"
# Trimmed events are gone from the table; the witness knows that they were there.
WITNESS = """
CREATE TABLE chaos_witness (session_id TEXT, seq INTEGER);
CREATE TRIGGER chaos_sees AFTER INSERT ON sessions_app_agentevent
BEGIN INSERT INTO chaos_witness VALUES (NEW.session_id, NEW.seq); END;
"""


def prepare(shop: Path, shop_url: str) -> dict[str, str]:
    """Fill the database; returns everybody's token."""
    call_command("migrate", verbosity=0)
    group = Group.objects.create(name="Everybody")
    names = ["view_session", "view_interrupt", "operate_session"]
    group.permissions.set(Permission.objects.filter(codename__in=names))
    PermissionKey.objects.get_or_create(key=KEY)[0].groups.add(group)
    tokens = {}
    for name in PEOPLE:
        user = User.objects.create_user(name)
        user.groups.add(group)
        tokens[name] = Token.objects.create(user=user).key
    load_agents(yaml.safe_dump(definitions(shop, shop_url)))
    sees, acts = WITNESS.split(";", 1)
    with connection.cursor() as cursor:
        cursor.execute(sees)
        cursor.execute(acts)
    return tokens


def definitions(shop: Path, shop_url: str) -> dict[str, Any]:
    """Agents whose writes ask first and whose writes don't; one's shop dies with its worker."""
    env = {"SHOP_DB": str(shop), "SHOP_DELAY": DELAYS}
    command = ["python", "-m", "sessions_app.tools.shop"]
    return {
        "connections": {
            "shop": {"transport": "http", "url": shop_url},
            "stall": {"transport": "stdio", "command": command, "env": env},
        },
        "agents": {
            "asks": agent("shop", asks=True),
            "acts": agent("shop", asks=False),
            "stall": agent("stall", asks=True),
        },
    }


def agent(shop: str, asks: bool) -> dict[str, Any]:
    approval = {"permission": KEY, "risk": "high", "deadline": "2h"}
    refund: dict[str, Any] = {"effect": "write", "timeout": "20s"}
    return {
        "model": "demo:script",
        "connections": [shop],
        "tools": {
            f"{shop}__lookup_order": {"effect": "read", "timeout": "20s"},
            f"{shop}__send_email": {"effect": "idempotent", "timeout": "20s"},
            f"{shop}__issue_refund": {**refund, **({"approval": approval} if asks else {})},
        },
        "settings": {"word_delay": 0, "script": script(shop)},
    }


def script(shop: str) -> list[dict[str, Any]]:
    lookup = {"tool": f"{shop}__lookup_order", "args": {"order_id": "A-1120"}}
    refund = {"order_id": "A-1120", "amount": 0.01, "currency": "EUR", "reason": "It came late."}
    mail = {"to": "lucas.weber@example.com", "subject": "Your order", "body": "We are sorry."}
    return [
        {
            "text": "I'll look.",
            "calls": [
                lookup,
                {"tool": f"{shop}__issue_refund", "args": refund},
                {"tool": f"{shop}__send_email", "args": mail},
            ],
        },
        {"calls": [{"tool": f"{shop}__issue_refund", "args": refund}, lookup]},
        {"text": "That is all."},
        {"repeat": True},
    ]


def events() -> int:
    """How many events there were so far, in all sessions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(rowid), 0) FROM chaos_witness")
        return int(cursor.fetchone()[0])
