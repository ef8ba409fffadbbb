"""Delivers decisions that were kept while the engine was away."""

from approvals_app.decisions import pending_delivery, redeliver


def sweep() -> int:
    """Try everything that waits for delivery, once. Returns how much there was.

    Safe beside other workers' sweepers, since the Flow takes a request id once.
    """
    waiting = pending_delivery()
    for decision in waiting:
        redeliver(decision)
    return len(waiting)
