"""Summaries that stand for older messages when the model is called."""

from django.db import models

from sessions_app.models.sessions import Session


class ContextSummary(models.Model):
    """What the model reads in place of the messages that it covers; those stay as they are."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="summaries")
    step_id = models.CharField(max_length=60, help_text="The CompactContext Step that wrote it")
    turn = models.PositiveIntegerField(default=0, help_text="The turn that ran then")
    last_turn = models.PositiveIntegerField(help_text="Turns up to this one are covered whole")
    position = models.PositiveIntegerField(
        help_text="Of the turn after that, model calls up to this Step's position are covered"
    )
    covers = models.CharField(max_length=120, help_text="In words, like turns 1–12")
    text = models.TextField()
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "context summaries"
        constraints = [
            models.UniqueConstraint(fields=["session", "step_id"], name="summary_once_per_step")
        ]

    def __str__(self) -> str:
        return f"Summary of {self.covers}"

    @property
    def line(self) -> str:
        """What was done, in one line."""
        several = self.covers.startswith("turns") or " and " in self.covers
        verb = "were" if several else "was"
        return f"{self.covers[:1].upper()}{self.covers[1:]} {verb} summarised for the model"
