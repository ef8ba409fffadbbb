"""How many of a worker's slots are in use, counted as its Steps begin and end."""

from __future__ import annotations

from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


class SlotCount(Interceptor):
    """Goes to one `Worker`; ``used`` is how many of its ``slots`` run a Step now."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.used = 0

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Counting(next, self)


class _Counting(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, count: SlotCount) -> None:
        super().__init__(next)
        self._count = count

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._count.used += 1
        try:
            return await super().execute_activity(input)
        finally:
            self._count.used -= 1
