import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress

import psutil
import pytest

from sessions_app.tools.mcp import ConnectionSpec, ToolPool


class DemoShop:
    """A shop of its own for a test: how to reach it, and what it wrote down."""

    def __init__(self, folder) -> None:
        self.path = folder / "shop.sqlite3"

    def spec(self, delay: str = "", **options) -> ConnectionSpec:
        return ConnectionSpec(
            name="shop",
            transport="stdio",
            command=("python", "-m", "sessions_app.tools.shop"),
            env={"SHOP_DB": str(self.path), "SHOP_DELAY": delay},
            **options,
        )

    def rows(self, query: str) -> list[tuple]:
        """What a query finds; [] while the shop has not made its tables yet."""
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path)) as connection:
            try:
                return connection.execute(query).fetchall()
            except sqlite3.OperationalError:
                return []


@pytest.fixture
def started() -> Callable[[], set[int]]:
    """The processes that run because of the test: this one's children, and theirs.

    Those that were there before it may come and go, and start others, as a database server does.
    """
    before = set(psutil.Process().children())

    def of_the_test() -> set[int]:
        found = set()
        for child in set(psutil.Process().children()) - before:
            with suppress(psutil.NoSuchProcess):
                found |= {one.pid for one in (child, *child.children(True)) if runs(one)}
        return found

    return of_the_test


def runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def shop(tmp_path) -> DemoShop:
    return DemoShop(tmp_path)


@pytest.fixture
async def pool() -> AsyncIterator[ToolPool]:
    pool = ToolPool()
    yield pool
    await pool.aclose()
