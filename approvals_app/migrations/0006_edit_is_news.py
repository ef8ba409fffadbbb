"""An edit is news of its own: whoever is called to act by now is called to vote again too."""

from typing import Any

from django.db import migrations, models

EVENTS = [
    ("ask", "an approval is asked for"),
    ("remind", "its deadline comes near"),
    ("escalate", "nobody answered, and others are asked"),
    ("edit", "somebody edited it, so it is voted on again"),
    ("decide", "it was approved or rejected"),
    ("expire", "its deadline passed"),
    ("cancel", "it was canceled or replaced"),
]


def tell_of_edits(apps: Any, schema_editor: Any) -> None:
    for name in ("NotificationPreference", "NotificationChannel"):
        rows = apps.get_model("approvals_app", name).objects
        for row in rows.only("pk", "events").iterator():
            if "ask" in row.events and "edit" not in row.events:
                rows.filter(pk=row.pk).update(events=[*row.events, "edit"])


class Migration(migrations.Migration):
    dependencies = [("approvals_app", "0005_audit_pruned")]

    operations = [
        migrations.AlterField(
            model_name="notification",
            name="event",
            field=models.CharField(choices=EVENTS, max_length=8),
        ),
        migrations.RunPython(tell_of_edits, migrations.RunPython.noop),
    ]
