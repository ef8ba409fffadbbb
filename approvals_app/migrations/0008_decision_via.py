"""A decision remembers where it was made, for the audit log, however late it is delivered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals_app", "0007_answers")]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="via",
            field=models.CharField(
                db_default="system",
                default="system",
                help_text="Where it was made: a key of approvals_app.audit.SURFACES",
                max_length=20,
            ),
        ),
    ]
