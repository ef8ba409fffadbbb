"""The engine's queues of a pool. Model calls, tools and the Flow each have their own, so that none of
them takes the others' slots. A pool's name has no dot, so no pool's queue is another's.
"""


def flow_queue(pool: str) -> str:
    """For the Flow and the records that it makes."""
    return f"dexweb-{pool}"


def model_queue(pool: str) -> str:
    return f"dexweb-{pool}.model"


def tool_queue(pool: str) -> str:
    return f"dexweb-{pool}.tools"
