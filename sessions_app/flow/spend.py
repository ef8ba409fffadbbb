"""Waiting while a session may not spend: until a person raises it, or it is time to ask again."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import SpendBlocked, SpendRaised
    from sessions_app.flow.recorder import FactLog
    from sessions_app.flow.state import RaiseSpend, SpendRefusal


class Spend:
    """What people let this session spend over its budgets, and whether a budget blocks it now."""

    def __init__(self, facts: FactLog, raised: str) -> None:
        self.raised = raised
        self.blocked = False
        self._facts = facts

    def check_blocked(self) -> None:
        if not self.blocked:
            raise rules.refuse("not_blocked")

    def raise_by(self, rpc: RaiseSpend) -> None:
        """The blocked call is asked about anew; by 0, nothing else changes."""
        self.raised = str(Decimal(self.raised) + Decimal(rpc.amount))
        self.blocked = False
        self._facts.add(SpendRaised("spend_raised", rpc.amount, self.raised, rpc.actor))

    async def wait(self, step_id: str, refusal: SpendRefusal, asked: int) -> None:
        """Return when the call may be asked about again. ``asked``: how often it was, in this wait."""
        self.blocked = True
        self._facts.add(
            SpendBlocked(
                "spend_blocked",
                step_id,
                refusal.reason,
                refusal.budget,
                refusal.spent,
                refusal.limit,
                refusal.words,
            )
        )
        pause = timedelta(seconds=rules.ask_again_after(asked))
        if refusal.until:
            begins = datetime.fromisoformat(refusal.until) - workflow.now()
            pause = min(pause, max(begins, timedelta(seconds=1)))
        try:
            await self._facts.flush()
            await workflow.wait_condition(lambda: not self.blocked, timeout=pause)
        except TimeoutError:
            pass
        finally:
            self.blocked = False
